<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
abstract class GreeterService
{
    abstract protected function a(): int;
    public function b(): int { return $this->a(); }
}
