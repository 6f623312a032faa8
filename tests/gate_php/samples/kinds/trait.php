<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
trait GreeterService
{
    private int $n = 0;
    public function a(): mixed { return $this->host() . self::B . $this->c; }
}
