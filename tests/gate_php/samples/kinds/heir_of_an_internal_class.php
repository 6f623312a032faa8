<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
class GreeterService extends \ArrayObject
{
    public function a(): int { return $this->count() + $this->free; }
}
