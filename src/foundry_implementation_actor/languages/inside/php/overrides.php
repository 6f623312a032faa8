<?php

declare(strict_types=1);

namespace Foundry\Gate;

/**
 * A parameter under another name than in the interface or parent: the engine allows it, and a caller
 * that names its arguments then fails. Found only where the app has such a caller.
 */
final class Overrides
{
    private \ReflectionClass $class;
    private Names $names;

    public function __construct(string $class, string $root)
    {
        $this->class = new \ReflectionClass($class);
        $this->names = new Names([], $root);
    }

    public function check(Report $report): void
    {
        foreach ($this->class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if ($method->class === $this->class->getName() && !$method->isConstructor() && $method->hasPrototype()) {
                $this->compare($method, $method->getPrototype(), $report);
            }
        }
    }

    private function compare(\ReflectionMethod $method, \ReflectionMethod $before, Report $report): void
    {
        $names = array_map(static fn (\ReflectionParameter $one): string => $one->getName(), $method->getParameters());
        foreach ($before->getParameters() as $at => $parameter) {
            $old = $parameter->getName();
            if (!in_array($old, $names, true) && isset($names[$at]) && $this->is_named_by_a_caller($method->getName(), $old)) {
                $line = (int) $method->getStartLine();
                $name = $method->getName();
                $report->add('renamed-parameter', $line, "$name() names its parameter \${$names[$at]}; {$before->class} "
                    ."names it \$$old, and a caller in this app passes it by that name");
            }
        }
    }

    private function is_named_by_a_caller(string $method, string $parameter): bool
    {
        return $this->names->written_in_app("/(->|::)$method\s*\((?:(?!;).){0,400}?\b$parameter\s*:(?!:)/s");
    }
}
