<?php

declare(strict_types=1);

namespace App\Plugins\Library\Services;

use App\Plugins\Library\Models\Loan;

final class Fines
{
    public function of(Loan $loan, int $today): int
    {
        return 10 * $loan->daysLate($today);
    }
}
