<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
class GreeterService
{
    public function __get(string $n): mixed { return $n; }
    public function a(): mixed { return $this->b; }
}
