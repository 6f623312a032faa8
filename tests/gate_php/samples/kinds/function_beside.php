<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
function helper(int $x): int { return $x; }
class GreeterService
{
    public function a(): int { return helper(1); }
}
