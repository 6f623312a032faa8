<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
enum GreeterService implements \JsonSerializable
{
    case A;
    public function jsonSerialize(): mixed { return $this->name; }
}
