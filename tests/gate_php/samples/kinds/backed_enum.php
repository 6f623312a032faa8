<?php
declare(strict_types=1);
namespace App\Plugins\Demo\Services;
enum GreeterService: string
{
    case A = 'a';
    const B = self::A;
    public static function c(): self { return self::from('a'); }
    public function d(): string { return $this->name . $this->value . count(self::cases()); }
}
