<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
use App\Plugins\Demo\Contracts\GreeterInterface;
use App\Plugins\Demo\Models\Phrase;

final class GreeterService implements GreeterInterface
{
    private static int $count = 0; public const MAX = 3;
    public function __construct(private PhraseBook $book) {}
    public function greet(string $name, string $lang = 'en'): string
    {
        return ($this->book->find($lang) ?? new Phrase($lang, 'Hello %s'))->render($name);
    }
    public function known(): array { return $this->book->languages(); }
    public function s(): int { self::$count += \PHP_INT_SIZE; return self::$count + static::MAX + Phrase::class[0] === 'A' ? M_PI <=> E_ALL : self::MAX; }
}
