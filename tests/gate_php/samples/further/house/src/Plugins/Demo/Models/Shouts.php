<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Models;
trait Shouts
{
    abstract public function greet(string $name, string $lang = 'en'): string;
    protected function shout(string $name): string { return strtoupper($this->greet($name)); }
}
