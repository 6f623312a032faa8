<?php

declare(strict_types=1);

namespace App\Tests\Plugins\Library;

use App\Plugins\Library\Models\Loan;
use App\Plugins\Library\Services\Fines;
use PHPUnit\Framework\TestCase;

final class FinesTest extends TestCase
{
    public function testEachDayLateCostsTenCents(): void
    {
        self::assertSame(30, (new Fines())->of(new Loan('Emma', 100), 103));
    }

    public function testABookThatIsBackInTimeCostsNothing(): void
    {
        self::assertSame(0, (new Fines())->of(new Loan('Emma', 100), 100));
    }

    public function testAFineNeverExceedsFiveEuros(): void
    {
        self::assertSame(500, (new Fines())->of(new Loan('Emma', 100), 365));
    }
}
