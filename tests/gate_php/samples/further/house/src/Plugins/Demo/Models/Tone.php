<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Models;
enum Tone: string
{
    case Calm = 'calm';
    case Loud = 'loud';
    public function label(): string { return ucfirst($this->value); }
}
