<?php

declare(strict_types=1);

namespace App\Plugins\Library\Services;

use App\Plugins\Library\Models\Loan;

/** What a reader owes for a book that came back late, in cents. */
final class Fines
{
    private const A_DAY = 10;
    private const AT_MOST = 500;

    public function of(Loan $loan, int $today): int
    {
        return min(self::AT_MOST, self::A_DAY * $loan->daysLate($today));
    }
}
