<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
interface GreeterService extends \Countable
{
    const A = 1;
    public function a(self $x = null): static;
}
