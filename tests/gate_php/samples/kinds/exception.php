<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
class GreeterService extends \RuntimeException
{
    public static function of(\Throwable $e): static { return new static($e->getMessage(), 0, $e); }
    public function at(): string { return $this->message . $this->line; }
}
