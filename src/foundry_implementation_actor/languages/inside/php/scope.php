<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/**
 * The variables of one function, without regard to order: what each is ever given, what is read, and
 * which expressions the function looks at by `instanceof` (their type is then not what was declared).
 */
final class Scope
{
    private const SUPER = ['this', 'GLOBALS', '_SERVER', '_GET', '_POST', '_FILES', '_COOKIE', '_SESSION', '_REQUEST', '_ENV'];

    /** @var array<string, list<?Node>> for each variable its types and assigned expressions; null is anything */
    private array $given = [];
    /** @var array<string, int> variables that are read, with the line */
    private array $read = [];
    /** @var array<string, true> */
    private array $narrowed = [];
    /** Whether variables may come and go unseen (`extract`, `$$name`, an included file). */
    private bool $open = false;

    public function __construct(?Node\FunctionLike $function, array $body, public readonly ?self $outer)
    {
        foreach ($function?->getParams() ?? [] as $parameter) {
            $this->give($parameter->var, $parameter->variadic ? null : $parameter->type);
        }
        if ($function instanceof Expr\Closure) {
            foreach ($function->uses as $use) {
                $this->give($use->var, $use->byRef ? null : $use->var);
            }
        }
        $this->scan($body);
    }

    /** @return list<?Node>|null what a variable is given here, or in the function around it; null: nothing known */
    public function given(string $name): ?array
    {
        return $this->open ? null : ($this->given[$name] ?? null);
    }

    public function narrowed(string $key): bool
    {
        return isset($this->narrowed[$key]) || ($this->outer?->narrowed($key) ?? false);
    }

    /** @return array<string, int> variables that are read and never given anything, with the line */
    public function undefined(): array
    {
        return $this->open ? [] : array_diff_key($this->read, $this->given, array_flip(self::SUPER));
    }

    /** A text that is the same for the same variable or chain of properties; empty for anything else. */
    public static function key(?Node $node): string
    {
        if ($node instanceof Expr\Variable && is_string($node->name)) {
            return '$'.$node->name;
        }
        if ($node instanceof Expr\PropertyFetch || $node instanceof Expr\NullsafePropertyFetch) {
            $inner = self::key($node->var);

            return $inner !== '' && $node->name instanceof Node\Identifier ? "$inner->{$node->name}" : '';
        }
        if ($node instanceof Expr\MethodCall && $node->name instanceof Node\Identifier && $node->args === []) {
            return self::key($node->var)."->{$node->name}()";
        }

        return '';
    }

    private function scan(mixed $part): void
    {
        Walk::over($part, fn (Node $node): bool => $this->see($node));
    }

    /** Takes in one node; false when what it holds was taken in already or belongs to another function. */
    private function see(Node $node): bool
    {
        return match (true) {
            $node instanceof Node\Stmt\ClassLike, $node instanceof Node\Stmt\Function_ => false,
            $node instanceof Expr\Closure => $this->closure($node),
            $node instanceof Expr\ArrowFunction => $this->arrow($node),
            $node instanceof Expr\Variable => $this->reads($node),
            $node instanceof Expr\Isset_, $node instanceof Node\Stmt\Unset_, $node instanceof Expr\Empty_ => $this->asks($node),
            $node instanceof Expr\BinaryOp\Coalesce => $this->coalesces($node),
            $node instanceof Expr\Instanceof_ => $this->narrows($node->expr),
            $node instanceof Expr\Include_, $node instanceof Expr\Eval_ => $this->open = true,
            $node instanceof Node\Expr\CallLike => $this->calls($node),
            default => $this->writes($node),
        };
    }

    private function writes(Node $node): bool
    {
        match (true) {
            $node instanceof Expr\Assign => $this->give($node->var, $node->expr),
            $node instanceof Expr\AssignRef => array_map($this->blur(...), [$node->var, $node->expr]),
            $node instanceof Expr\AssignOp, $node instanceof Expr\PostInc, $node instanceof Expr\PreInc,
            $node instanceof Expr\PostDec, $node instanceof Expr\PreDec => $this->blur($node->var),
            $node instanceof Node\Stmt\Foreach_ => array_map($this->blur(...), [$node->keyVar, $node->valueVar]),
            $node instanceof Node\Stmt\Catch_ => $this->catches($node),
            $node instanceof Node\Stmt\Global_, $node instanceof Node\Stmt\Static_ => Walk::inside($node, $this->blur(...)),
            default => null,
        };
        $remark = $node->getDocComment()?->getText() ?? '';
        if (preg_match_all('/@var\b[^$*]*\$(\w+)/', $remark, $found) > 0) {
            array_map(fn (string $name) => $this->give(new Expr\Variable($name), null), $found[1]);
        }

        return true;
    }

    private function give(?Node $target, ?Node $source): void
    {
        if ($target instanceof Expr\Variable && is_string($target->name)) {
            $this->given[$target->name][] = $source;
        } elseif ($target !== null) {
            $this->blur($target);
        }
    }

    /** A variable, or every variable of a list pattern or an element, is given something unknown. */
    private function blur(?Node $target): bool
    {
        if ($target instanceof Expr\Variable) {
            is_string($target->name) ? $this->give($target, null) : $this->open = true;
        } elseif ($target instanceof Expr\ArrayDimFetch) {
            $this->blur($target->var);
        } elseif ($target instanceof Expr\List_ || $target instanceof Expr\Array_) {
            array_map(fn (?Node $item) => $this->blur($item?->value), $target->items);
        }

        return true;
    }

    private function reads(Expr\Variable $node): bool
    {
        if (is_string($node->name)) {
            $this->read[$node->name] ??= $node->getStartLine();
        } else {
            $this->open = true;
        }

        return true;
    }

    /** A closure reads what it captures; what it captures by reference it may also write. */
    private function closure(Expr\Closure $node): bool
    {
        foreach ($node->uses as $use) {
            $use->byRef ? $this->blur($use->var) : $this->reads($use->var);
        }

        return false;
    }

    private function arrow(Expr\ArrowFunction $node): bool
    {
        $inner = new self($node, [$node->expr], $this);
        foreach ($inner->undefined() as $name => $line) {
            $this->read[$name] ??= $line;
        }
        $this->open = $this->open || $inner->open;

        return false;
    }

    private function catches(Node\Stmt\Catch_ $node): void
    {
        $this->give($node->var, count($node->types) === 1 ? $node->types[0] : null);
    }

    /** `isset`, `unset` and `empty` may name what is not there; only what indexes it is read. */
    private function asks(Node $node): bool
    {
        foreach ($node->vars ?? [$node->expr] as $target) {
            $this->chain($target);
        }

        return false;
    }

    private function coalesces(Expr\BinaryOp\Coalesce $node): bool
    {
        $this->chain($node->left);
        $this->scan($node->right);

        return false;
    }

    private function chain(Node $node): void
    {
        while ($node instanceof Expr\ArrayDimFetch || $node instanceof Expr\PropertyFetch || $node instanceof Expr\NullsafePropertyFetch) {
            $this->scan($node instanceof Expr\ArrayDimFetch ? $node->dim : []);
            $node = $node->var;
        }
        if (!$node instanceof Expr\Variable) {
            $this->scan($node);
        }
    }

    private function narrows(Node $node): bool
    {
        $key = self::key($node);
        if ($key !== '') {
            $this->narrowed[$key] = true;
        }

        return true;
    }

    /** An argument may be taken by reference, and then be written; so every variable argument may be. */
    private function calls(Node\Expr\CallLike $node): bool
    {
        $name = $node instanceof Expr\FuncCall && $node->name instanceof Node\Name ? $node->name->toLowerString() : null;
        $this->open = $this->open || in_array($name, ['extract', 'parse_str', 'compact', 'get_defined_vars'], true);
        $known = $name !== null && function_exists($name) ? new \ReflectionFunction($name) : null;
        foreach ($node->getRawArgs() as $at => $argument) {
            if (!$argument instanceof Node\Arg) {
                continue;
            }
            if ($name === 'is_a' || $name === 'is_callable' || $name === 'method_exists' || $name === 'is_subclass_of') {
                $this->narrows($argument->value);
            }
            if ($known === null || self::by_reference($known, $at)) {
                $this->blurs_argument($argument->value, $known !== null);
            }
        }

        return true;
    }

    private static function by_reference(\ReflectionFunction $function, int $at): bool
    {
        $parameters = $function->getParameters();
        $parameter = $parameters[$at] ?? end($parameters);

        return $parameter !== false && ($at < count($parameters) || $parameter->isVariadic()) && $parameter->isPassedByReference();
    }

    /** By a function that surely writes it, or perhaps: then it keeps the type that it was given elsewhere. */
    private function blurs_argument(Node $value, bool $surely): void
    {
        $name = $value instanceof Expr\Variable && is_string($value->name) ? $value->name : null;
        if ($surely || ($name !== null && !isset($this->given[$name]))) {
            $this->blur($value);
        }
    }
}
