<?php

declare(strict_types=1);

namespace App\Plugins\Library\Models;

/** A book that was lent, and the day of the year on which it has to be back. */
final class Loan
{
    public function __construct(public readonly string $book, private int $dueOn)
    {
    }

    public function daysLate(int $today): int
    {
        return max(0, $today - $this->dueOn);
    }
}
