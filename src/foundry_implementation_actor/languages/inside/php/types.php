<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/**
 * Where an expression stands: in which class (null: not known, as in a trait), with which variables,
 * and whether `$this` is that class (a closure that is handed away may be bound to another).
 */
final class Spot
{
    public function __construct(public readonly ?string $class, public readonly Scope $scope, public readonly bool $bound)
    {
    }
}

/**
 * Of which classes the value of an expression can be. null: not known. An empty list: of no class.
 * Known is only what is declared or created; a remark in a comment is never believed, only respected.
 */
final class Types
{
    private const DEEPEST = 12;

    private int $depth = 0;

    /** @return list<string>|null */
    public function of(?Node $node, Spot $spot): ?array
    {
        if ($node === null || $this->depth > self::DEEPEST || $spot->scope->narrowed(Scope::key($node))) {
            return null;
        }
        ++$this->depth;
        try {
            return $this->look($node, $spot);
        } finally {
            --$this->depth;
        }
    }

    /** @return list<string>|null the same for a declared type of a body */
    public function declared(?Node $type, ?string $class): ?array
    {
        return match (true) {
            $type instanceof Node\NullableType => $this->declared($type->type, $class),
            $type instanceof Node\UnionType => $this->any(array_map(fn (Node $one) => $this->declared($one, $class), $type->types)),
            $type instanceof Node\Identifier => self::builtin($type->toLowerString()),
            $type instanceof Node\Name => self::named((string) $type, $class),
            default => null,
        };
    }

    /** The class that `self`, `static`, `parent` or a name stands for; null when it is not known. */
    public static function class_of(Node $name, Spot $spot): ?string
    {
        return $name instanceof Node\Name ? (self::named((string) $name, $spot->class)[0] ?? null) : null;
    }

    /** @return list<string>|null */
    private function look(Node $node, Spot $spot): ?array
    {
        return match (true) {
            $node instanceof Node\Name, $node instanceof Node\Identifier, $node instanceof Node\NullableType,
            $node instanceof Node\UnionType, $node instanceof Node\IntersectionType => $this->declared($node, $spot->class),
            $node instanceof Expr\Variable => $this->variable($node, $spot),
            $node instanceof Expr\New_ => $node->class instanceof Node\Name ? self::named((string) $node->class, $spot->class) : null,
            $node instanceof Expr\Clone_ => $this->of($node->expr, $spot),
            $node instanceof Expr\Assign => $this->of($node->expr, $spot),
            $node instanceof Expr\BinaryOp\Coalesce => $this->any([$this->of($node->left, $spot), $this->of($node->right, $spot)]),
            $node instanceof Expr\Ternary => $this->any([$this->of($node->if ?? $node->cond, $spot), $this->of($node->else, $spot)]),
            $node instanceof Expr\Match_ => $this->any(array_map(fn ($arm) => $this->of($arm->body, $spot), $node->arms)),
            $node instanceof Expr\PropertyFetch, $node instanceof Expr\NullsafePropertyFetch => $this->property($node, $spot),
            $node instanceof Expr\StaticPropertyFetch => $this->static_property($node, $spot),
            $node instanceof Expr\Throw_, $node instanceof Node\Scalar, $node instanceof Expr\Array_ => [],
            $node instanceof Expr\ConstFetch => $node->name->toLowerString() === 'null' ? [] : null,
            $node instanceof Expr\CallLike => $this->call($node, $spot),
            default => null,
        };
    }

    /** @return list<string>|null */
    private function variable(Expr\Variable $node, Spot $spot): ?array
    {
        if ($node->name === 'this') {
            return $spot->bound && $spot->class !== null ? [$spot->class] : null;
        }
        for ($scope = $spot->scope; $scope !== null && is_string($node->name); $scope = $scope->outer) {
            $given = $scope->given($node->name);
            if ($given !== null) {
                // What a closure captures is asked in the function around it, not in itself again.
                $inside = new Spot($spot->class, $scope, $spot->bound);
                $around = new Spot($spot->class, $scope->outer ?? $scope, $spot->bound);

                return $this->any(array_map(fn (?Node $one) => $this->of($one, self::same($one, $node) ? $around : $inside), $given));
            }
        }

        return null;
    }

    private static function same(?Node $one, Expr\Variable $node): bool
    {
        return $one instanceof Expr\Variable && $one->name === $node->name;
    }

    /** @return list<string>|null */
    private function property(Node $node, Spot $spot): ?array
    {
        if (!$node->name instanceof Node\Identifier) {
            return null;
        }
        $name = (string) $node->name;

        return $this->each($this->of($node->var, $spot), fn (string $class) => property_exists($class, $name)
            ? $this->reflected((new \ReflectionProperty($class, $name))->getType(), $class)
            : null);
    }

    /** @return list<string>|null */
    private function static_property(Expr\StaticPropertyFetch $node, Spot $spot): ?array
    {
        $class = self::class_of($node->class, $spot);
        $name = $node->name instanceof Node\Identifier ? (string) $node->name : '';

        return $class !== null && Names::known($class) && property_exists($class, $name)
            ? $this->reflected((new \ReflectionProperty($class, $name))->getType(), $class)
            : null;
    }

    /** @return list<string>|null */
    private function call(Expr\CallLike $node, Spot $spot): ?array
    {
        if ($node->isFirstClassCallable()) {
            return ['Closure'];
        }
        if ($node instanceof Expr\FuncCall) {
            $name = $node->name instanceof Node\Name ? Calls::function_name($node->name) : null;

            return $name !== null ? $this->returned(new \ReflectionFunction($name), '') : null;
        }
        $name = $node->name instanceof Node\Identifier ? (string) $node->name : '';
        $classes = $node instanceof Expr\StaticCall
            ? (($class = self::class_of($node->class, $spot)) !== null ? [$class] : null)
            : $this->of($node->var, $spot);

        return $this->each($classes, fn (string $class) => Names::known($class) && method_exists($class, $name)
            ? $this->returned(new \ReflectionMethod($class, $name), $class)
            : null);
    }

    /** @return list<string>|null what a call gives; not known where a remark narrows what the signature says */
    private function returned(\ReflectionFunctionAbstract $function, string $class): ?array
    {
        $remark = (string) $function->getDocComment();
        $narrowed = preg_match('/-return\b|@(psalm-|phpstan-)?template\b/', $remark) === 1;

        return $narrowed ? null : $this->reflected($function->getReturnType(), $class);
    }

    /** @return list<string>|null */
    private function reflected(?\ReflectionType $type, string $class): ?array
    {
        return match (true) {
            $type instanceof \ReflectionUnionType => $this->any(array_map(fn ($one) => $this->reflected($one, $class), $type->getTypes())),
            !$type instanceof \ReflectionNamedType => null,
            $type->getName() === 'static' => [$class],
            $type->isBuiltin() => self::builtin($type->getName()),
            default => self::named($type->getName(), $class),
        };
    }

    /** @return list<string>|null */
    private static function builtin(string $name): ?array
    {
        return in_array($name, ['object', 'mixed', 'callable', 'iterable', 'static', 'never'], true) ? null : [];
    }

    /** @return list<string>|null */
    private static function named(string $name, ?string $class): ?array
    {
        return match (strtolower($name)) {
            'self', 'static' => $class === null ? null : [$class],
            'parent' => $class !== null && ($parent = get_parent_class($class)) !== false ? [$parent] : null,
            default => [$name],
        };
    }

    /**
     * @param  list<string>|null                  $classes
     * @param  callable(string): ?list<string> $ask
     * @return list<string>|null
     */
    private function each(?array $classes, callable $ask): ?array
    {
        return $classes === null || $classes === [] ? null : $this->any(array_map($ask, $classes));
    }

    /**
     * @param  array<list<string>|null> $each
     * @return list<string>|null
     */
    private function any(array $each): ?array
    {
        return in_array(null, $each, true) ? null : array_values(array_unique(array_merge([], ...array_values($each))));
    }
}
