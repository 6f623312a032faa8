<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
use App\Plugins\Demo\Models\Phrase;
class PhraseBook { private array $p = []; public function add(Phrase $x): void { $this->p[$x->lang] = $x; } public function find(string $lang): ?Phrase { return $this->p[$lang] ?? null; } private function sort(): array { return $this->p; } public function languages(): array { return array_keys($this->p); } }
