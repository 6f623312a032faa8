<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
final readonly class GreeterService
{
    public const A = 'a';
    public function __construct(private null|\Countable $list = null, protected int|float $n = 1,) {}
    public function never(): never { throw new \LogicException(); }
    public function dnf((\Countable&\Traversable)|null $x): true { return true; }
    public function spread(int ...$all): array { return [...$all, ...['k' => 1]]; }
    public function text(): string
    {
        return <<<'X'
            $not->called()
            X . match (true) { $this->n > 1, $this->n < 0 => 'a', default => $this->list?->count() ?? 0b1_0 };
    }
    #[\ReturnTypeWillChange]
    public static function of(): static { return new static(list: null, n: 0o17); }
}
