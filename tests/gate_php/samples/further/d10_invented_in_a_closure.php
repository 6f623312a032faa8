<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
use App\Plugins\Demo\Contracts\GreeterInterface;
use App\Plugins\Demo\Models\Phrase;

final class GreeterService implements GreeterInterface
{

    public function __construct(private PhraseBook $book) {}
    public function greet(string $name, string $lang = 'en'): string
    {
        return ($this->book->find($lang) ?? new Phrase($lang, 'Hello %s'))->render($name);
    }
    public function known(): array { return $this->book->languages(); }
    public function many(array $names): array { return array_map(fn (string $n): string => $this->shout($n), $names); }
}
