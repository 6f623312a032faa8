<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/** Walks one body and asks of each name that it uses where it leads. */
final class Body
{
    /** Marks a property that is only written, unset or asked for: it need not be there before. */
    public const WRITTEN = 'written';

    private Names $names;
    private Types $types;
    /** The first part of the app's own namespace: a class there that does not exist is an invention anywhere. */
    private string $own = '';
    private bool $rebinds = false;
    /** @var array<string, true> properties that the body itself gives to something */
    private array $written = [];

    public function __construct(private array $tree, string $root, private Report $report)
    {
        $this->names = new Names($tree, $root);
        $this->types = new Types();
        Walk::over($tree, function (Node $node): void {
            if ($node instanceof Node\Stmt\Namespace_ && $node->name !== null) {
                $this->own = strtolower($node->name->getFirst()).'\\';
            }
            if ($node instanceof Expr\MethodCall || $node instanceof Expr\StaticCall) {
                $name = $node->name instanceof Node\Identifier ? $node->name->toLowerString() : '';
                $this->rebinds = $this->rebinds || in_array($name, ['bind', 'bindto', 'call'], true);
            }
            $this->mark($node);
        });
    }

    public function check(): void
    {
        $this->walk($this->tree, new Spot(null, new Scope(null, [], null), false));
    }

    private function mark(Node $node): void
    {
        $targets = match (true) {
            $node instanceof Expr\Assign, $node instanceof Expr\AssignRef => [$node->var],
            $node instanceof Expr\BinaryOp\Coalesce => [$node->left],
            $node instanceof Expr\AssignOp\Coalesce => [$node->var],
            $node instanceof Expr\Isset_, $node instanceof Node\Stmt\Unset_ => $node->vars,
            $node instanceof Expr\Empty_ => [$node->expr],
            $node instanceof Node\Stmt\Foreach_ => array_filter([$node->keyVar, $node->valueVar]),
            default => [],
        };
        foreach ($targets as $target) {
            $this->mark_chain($target);
        }
    }

    private function mark_chain(Node $node): void
    {
        if ($node instanceof Expr\List_ || $node instanceof Expr\Array_) {
            array_map(fn (?Node $item) => $item === null ? null : $this->mark_chain($item->value), $node->items);
        }
        while ($node instanceof Expr\ArrayDimFetch) {
            $node = $node->var;
        }
        if ($node instanceof Expr\PropertyFetch || $node instanceof Expr\NullsafePropertyFetch) {
            $node->setAttribute(self::WRITTEN, true);
            $this->written[(string) ($node->name instanceof Node\Identifier ? $node->name : '')] = true;
        }
    }

    private function walk(mixed $part, Spot $spot): void
    {
        Walk::over($part, fn (Node $node): bool => $this->enter($node, $spot));
    }

    private function enter(Node $node, Spot $spot): bool
    {
        if ($node instanceof Node\Stmt\ClassLike) {
            $this->in_class($node);

            return false;
        }
        if ($node instanceof Node\FunctionLike) {
            $this->in_function($node, $spot, $spot->bound);

            return false;
        }
        if ($node instanceof Node\AttributeGroup) {
            return false; // an attribute that nobody asks for needs no class
        }
        if ($node instanceof Expr\MethodCall || $node instanceof Expr\StaticCall || $node instanceof Expr\New_) {
            return $this->in_call($node, $spot);
        }
        $this->look($node, $spot);

        return true;
    }

    /** In a trait and in a class without name, `$this` and `self` are not known. */
    private function in_class(Node\Stmt\ClassLike $node): void
    {
        $name = isset($node->namespacedName) && !$node instanceof Node\Stmt\Trait_ ? (string) $node->namespacedName : null;
        $known = $name !== null && Names::declared($name);
        $spot = new Spot($known ? $name : null, new Scope(null, [], null), $known);
        foreach ([...($node->implements ?? []), ...array_filter([is_array($node->extends ?? null) ? null : $node->extends ?? null])] as $one) {
            $this->class_there($one, $spot);
        }
        $this->walk($node->stmts, $spot);
    }

    private function in_function(Node\FunctionLike $node, Spot $spot, bool $bound): void
    {
        $outer = $node instanceof Expr\Closure || $node instanceof Expr\ArrowFunction ? $spot->scope : null;
        $body = $node instanceof Expr\ArrowFunction ? [$node->expr] : ($node->getStmts() ?? []);
        $inner = new Spot($spot->class, new Scope($node, $body, $outer), $bound && !($node->static ?? false));
        foreach ($node->getParams() as $parameter) {
            $this->walk([$parameter->type, $parameter->default], $inner);
            $this->type($parameter->type, $inner);
        }
        $this->type($node->getReturnType(), $inner);
        if (!$node instanceof Expr\ArrowFunction) {
            foreach ($inner->scope->undefined() as $name => $line) {
                $this->report->add('undefined-variable', $line, "the variable \$$name is read and never given anything");
            }
        }
        $this->walk($body, $inner);
    }

    /** A closure that is handed to a method may be bound to another object there. */
    private function in_call(Expr\CallLike $node, Spot $spot): bool
    {
        $this->look($node, $spot);
        foreach ($node->getSubNodeNames() as $name) {
            if ($name !== 'args') {
                $this->walk($node->$name, $spot);
            }
        }
        foreach ($node->getRawArgs() as $argument) {
            $value = $argument instanceof Node\Arg ? $argument->value : null;
            if ($value instanceof Expr\Closure) {
                $this->in_function($value, $spot, false);
            } else {
                $this->walk($value, $spot);
            }
        }

        return false;
    }

    private function look(Node $node, Spot $spot): void
    {
        $spot = $this->rebinds && $spot->scope->outer !== null ? new Spot($spot->class, $spot->scope, false) : $spot;
        match (true) {
            $node instanceof Node\Stmt\Property, $node instanceof Node\Stmt\ClassConst => $this->type($node->type ?? null, $spot),
            $node instanceof Node\Stmt\TraitUse => array_map(fn ($one) => $this->class_there($one, $spot), $node->traits),
            $node instanceof Node\Stmt\Catch_ => array_map(fn ($one) => $this->class_there($one, $spot), $node->types),
            $node instanceof Expr\Instanceof_ => $this->class_there($node->class, $spot, only_own: true),
            $node instanceof Expr\New_ => $this->creates($node, $spot),
            $node instanceof Expr\ClassConstFetch => $this->constant($node, $spot),
            $node instanceof Expr\ConstFetch => $this->global_constant($node),
            $node instanceof Expr\StaticPropertyFetch => $this->static_property($node, $spot),
            $node instanceof Expr\StaticCall, $node instanceof Expr\MethodCall, $node instanceof Expr\NullsafeMethodCall,
            $node instanceof Expr\PropertyFetch, $node instanceof Expr\NullsafePropertyFetch => $this->member($node, $spot),
            $node instanceof Expr\FuncCall => $this->calls_function($node),
            default => null,
        };
    }

    private function member(Expr $node, Spot $spot): void
    {
        $property = $node instanceof Expr\PropertyFetch || $node instanceof Expr\NullsafePropertyFetch;
        if (!$property || !$node->name instanceof Node\Identifier || !isset($this->written[(string) $node->name])) {
            (new Members($this->types, $this->names, $this->report))->look($node, $spot);
        }
    }

    private function type(?Node $type, Spot $spot): void
    {
        foreach ($this->types->declared($type, $spot->class) ?? [] as $class) {
            $this->class_exists($class, $type->getStartLine(), false);
        }
    }

    private function class_there(?Node $name, Spot $spot, bool $only_own = false): ?string
    {
        $class = $name !== null ? Types::class_of($name, $spot) : null;

        return $class !== null && $this->class_exists($class, $name->getStartLine(), $only_own) ? $class : null;
    }

    /** Whether it is there; when not, that is found, unless the body asks for it or it is no class of this app's own. */
    private function class_exists(string $class, int $line, bool $only_own): bool
    {
        if (Names::known($class)) {
            return true;
        }
        if ((!$only_own || str_starts_with(strtolower($class), $this->own)) && !$this->names->class_may_be_there($class)) {
            $this->report->add('unknown-class', $line, "there is no class $class");
        }

        return false;
    }

    private function creates(Expr\New_ $node, Spot $spot): void
    {
        $class = $this->class_there($node->class, $spot);
        if ($class === null) {
            return;
        }
        $reflected = new \ReflectionClass($class);
        $late = $node->class instanceof Node\Name && in_array($node->class->toLowerString(), ['static', 'self'], true);
        if (!$late && ($reflected->isAbstract() || $reflected->isInterface() || $reflected->isTrait() || $reflected->isEnum())) {
            $this->report->add('not-instantiable', $node->getStartLine(), "$class cannot be created with new");
        }
        $constructor = $reflected->getConstructor();
        $open = $node->class instanceof Node\Name && $node->class->toLowerString() === 'static' && !$reflected->isFinal();
        $fault = $constructor !== null && !$open ? Calls::fault($node, $constructor, "new $class()") : '';
        if ($fault !== '') {
            $this->report->add('arguments', $node->getStartLine(), $fault);
        }
    }

    private function constant(Expr\ClassConstFetch $node, Spot $spot): void
    {
        $name = $node->name instanceof Node\Identifier ? (string) $node->name : '';
        $class = $this->class_there($node->class, $spot, only_own: $name === 'class');
        if ($class === null || $name === 'class' || $name === '') {
            return;
        }
        $reflected = new \ReflectionClass($class);
        $late = $node->class instanceof Node\Name && $node->class->toLowerString() === 'static' && !$reflected->isFinal();
        if (!$late && !$reflected->hasConstant($name) && !$this->names->mentioned("$class::$name")) {
            $this->report->add('unknown-constant', $node->getStartLine(), "$class has no constant $name");
        }
    }

    private function global_constant(Expr\ConstFetch $node): void
    {
        $name = (string) $node->name;
        $inside = (string) $node->name->getAttribute('namespacedName');
        $known = defined($name) || ($inside !== '' && defined($inside));
        if ($known || $this->names->asked($name) || in_array(strtolower($name), ['true', 'false', 'null'], true)) {
            return;
        }
        $last = preg_quote($node->name->getLast(), '/');
        if (!$this->names->written_in_app("/define\s*\(\s*['\"]{$last}['\"]|\bconst\s+$last\s*=/")) {
            $this->report->add('unknown-constant', $node->getStartLine(), "there is no constant $name");
        }
    }

    private function static_property(Expr\StaticPropertyFetch $node, Spot $spot): void
    {
        $class = $this->class_there($node->class, $spot);
        $late = $node->class instanceof Node\Name && $node->class->toLowerString() === 'static';
        if ($class !== null && !$late && $node->name instanceof Node\Identifier && !property_exists($class, (string) $node->name)) {
            $this->report->add('unknown-property', $node->getStartLine(), "$class has no static property \${$node->name}");
        }
    }

    private function calls_function(Expr\FuncCall $node): void
    {
        if (!$node->name instanceof Node\Name) {
            return;
        }
        $name = Calls::function_name($node->name);
        if ($name !== null) {
            $fault = Calls::fault($node, new \ReflectionFunction($name), "$name()");
            $fault === '' || $this->report->add('arguments', $node->getStartLine(), $fault);
        } elseif (!$this->names->asked((string) $node->name)) {
            $last = preg_quote($node->name->getLast(), '/');
            if (!$this->names->written_in_app("/^\s*function\s+&?$last\s*\(/m")) {
                $this->report->add('unknown-function', $node->getStartLine(), "there is no function {$node->name}()");
            }
        }
    }
}
