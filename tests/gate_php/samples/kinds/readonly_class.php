<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
final readonly class GreeterService
{
    public function __construct(public int $n = 1) {}
    public function with(int $n): static { return new static($n); }
}
