<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
/**
 * @method int later()
 * @property string $name
 */
class GreeterService
{
    public function a(): mixed { return $this->later() . $this->name; }
}
