<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/** Whether a method that is called and a property that is read are there, and may be used from where they are used. */
final class Members
{
    public function __construct(private Types $types, private Names $names, private Report $report)
    {
    }

    public function look(Expr $node, Spot $spot): void
    {
        if (!$node->name instanceof Node\Identifier || $this->names->mentioned((string) $node->name)) {
            return;
        }
        if ($node instanceof Expr\StaticCall) {
            $this->static_call($node, $spot);

            return;
        }
        $classes = $this->types->of($node->var, $spot) ?? [];
        $known = array_values(array_filter($classes, Names::known(...)));
        if ($classes === [] || $known !== $classes) {
            return;
        }
        $node instanceof Expr\PropertyFetch || $node instanceof Expr\NullsafePropertyFetch
            ? $this->property($node, $known, $spot)
            : $this->method($node, $known, $spot);
    }

    /** @param list<string> $classes a value of any of them may stand there: the call is wrong when none of them takes it */
    private function method(Expr\CallLike $node, array $classes, Spot $spot): void
    {
        $name = (string) $node->name;
        $faults = array_map(fn (string $class): array => $this->method_fault($node, $class, $name, $spot), $classes);
        if (!in_array([], $faults, true)) {
            $this->report->add($faults[0][0], $node->getStartLine(), $faults[0][1]);
        }
    }

    /** @return array{}|array{string, string} the rule and what is wrong */
    private function method_fault(Expr\CallLike $node, string $class, string $name, Spot $spot): array
    {
        $static = $node instanceof Expr\StaticCall;
        $magic = method_exists($class, '__call') || ($static && method_exists($class, '__callStatic'));
        if ($class === 'Closure' || $this->remarked($class, 'method', $name)) {
            return [];
        }
        if (!method_exists($class, $name)) {
            return $magic || $this->may_have($class, $name) ? [] : ['unknown-method', "$class has no method $name()"];
        }
        $method = new \ReflectionMethod($class, $name);
        if (!$magic && !self::reachable($method, $spot)) {
            return ['hidden-method', "$class::$name() is not to be called from here"];
        }
        $inside = $spot->class !== null && is_a($spot->class, $method->class, true);
        if ($static && !$method->isStatic() && !$inside) {
            return ['not-static', "$class::$name() is not static"];
        }
        $fault = Calls::fault($node, $method, "$class::$name()");

        return $fault === '' ? [] : ['arguments', $fault];
    }

    /**
     * Whether an object of the class may have a method that the class does not declare: an iterator around another
     * passes calls on, an object behind an interface has methods beside it.
     */
    private function may_have(string $class, string $name): bool
    {
        return is_a($class, 'OuterIterator', true)
            || (interface_exists($class) && $this->names->implementor_has($class, $name));
    }

    private function static_call(Expr\StaticCall $node, Spot $spot): void
    {
        $class = Types::class_of($node->class, $spot);
        if ($class === null) {
            return;
        }
        if (Names::known($class)) {
            $this->method($node, [$class], $spot);
        } elseif (!$this->names->class_may_be_there($class)) {
            $this->report->add('unknown-class', $node->getStartLine(), "there is no class $class");
        }
    }

    /** @param list<string> $classes */
    private function property(Expr $node, array $classes, Spot $spot): void
    {
        if ($node->getAttribute(Body::WRITTEN) === true) {
            return;
        }
        $name = (string) $node->name;
        foreach ($classes as $class) {
            if ($this->has_property($class, $name, $spot)) {
                return;
            }
        }
        $this->report->add('unknown-property', $node->getStartLine(), "{$classes[0]} has no property \$$name to be read here");
    }

    private function has_property(string $class, string $name, Spot $spot): bool
    {
        $reflected = new \ReflectionClass($class);
        if (method_exists($class, '__get') || self::dynamic($reflected) || $this->remarked($class, 'property', $name)) {
            return true;
        }
        if (property_exists($class, $name)) {
            return self::reachable(new \ReflectionProperty($class, $name), $spot);
        }

        // A non-final class of the app may have it further down; an interface never says.
        return $reflected->isInterface() && !$reflected->isEnum();
    }

    /** Whether objects of the class may have properties that it does not declare. */
    private static function dynamic(\ReflectionClass $class): bool
    {
        for ($one = $class; $one !== false; $one = $one->getParentClass()) {
            $error = in_array($one->getName(), ['Exception', 'Error', 'ErrorException'], true);
            if ($one->getAttributes('AllowDynamicProperties') !== [] || ($one->isInternal() && !$error && !$one->isInterface())) {
                return true;
            }
        }

        return false;
    }

    private static function reachable(\ReflectionMethod|\ReflectionProperty $member, Spot $spot): bool
    {
        if ($member->isPublic() || $spot->class === null) {
            return true;
        }
        $at = $member->class;

        return $member->isPrivate() ? $at === $spot->class : is_a($spot->class, $at, true) || is_a($at, $spot->class, true);
    }

    /** Whether a class, or one that it stands on, says in its remark that it has such a member. */
    private function remarked(string $class, string $kind, string $name): bool
    {
        $reflected = new \ReflectionClass($class);
        $parent = $reflected->getParentClass();
        foreach ([$reflected, ...($parent !== false ? [$parent] : []), ...$reflected->getInterfaces(), ...$reflected->getTraits()] as $one) {
            $remark = (string) $one->getDocComment();
            if (preg_match("/@$kind\\S*\\s[^\\n]*?\\b".preg_quote($name, '/').'\b|@mixin\b/', $remark) === 1) {
                return true;
            }
        }

        return false;
    }
}
