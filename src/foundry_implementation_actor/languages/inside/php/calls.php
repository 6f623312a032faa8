<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/** Whether a call gives a function the arguments that it takes. */
final class Calls
{
    /** The function that a name means, as PHP looks it up; null when there is none. */
    public static function function_name(Node\Name $name): ?string
    {
        $inside = $name->getAttribute('namespacedName');
        foreach ([$inside, $name] as $one) {
            if ($one !== null && function_exists((string) $one)) {
                return (string) $one;
            }
        }

        return null;
    }

    /** What is wrong with the arguments of a call to `$function`; empty when nothing is. */
    public static function fault(Expr\CallLike $call, \ReflectionFunctionAbstract $function, string $label): string
    {
        if ($call->isFirstClassCallable()) {
            return '';
        }
        [$positions, $names, $spread] = self::given($call);
        $parameters = $function->getParameters();
        $takes = array_map(static fn (\ReflectionParameter $one): string => $one->getName(), $parameters);
        $unknown = array_diff($names, $takes);
        if ($unknown !== [] && !$function->isVariadic()) {
            return "$label has no parameter \$".reset($unknown);
        }
        if (!$spread && $positions > count($parameters) && !self::takes_any($function)) {
            return "$label takes at most ".count($parameters)." arguments, $positions given";
        }
        $missing = $spread ? [] : self::missing($parameters, $positions, $names);

        return $missing === [] ? '' : "$label is not given its parameter \$".reset($missing);
    }

    /** @return array{int, list<string>, bool} arguments by position, names of the others, whether one is spread */
    private static function given(Expr\CallLike $call): array
    {
        [$positions, $names, $spread] = [0, [], false];
        foreach ($call->getArgs() as $argument) {
            $spread = $spread || $argument->unpack;
            $argument->name !== null ? $names[] = (string) $argument->name : ++$positions;
        }

        return [$positions, $names, $spread];
    }

    /**
     * @param  list<\ReflectionParameter> $parameters
     * @param  list<string>               $names
     * @return list<string>
     */
    private static function missing(array $parameters, int $positions, array $names): array
    {
        $missing = [];
        foreach ($parameters as $at => $parameter) {
            if ($at >= $positions && !$parameter->isOptional() && !in_array($parameter->getName(), $names, true)) {
                $missing[] = $parameter->getName();
            }
        }

        return $missing;
    }

    /** A function that asks for its arguments by `func_get_args` takes more than it declares. */
    private static function takes_any(\ReflectionFunctionAbstract $function): bool
    {
        if ($function->isVariadic()) {
            return true;
        }
        $file = $function->getFileName();
        if ($file === false || !is_file($file)) {
            return false;
        }
        $lines = array_slice((array) file($file), $function->getStartLine() - 1, $function->getEndLine() - $function->getStartLine() + 1);

        return preg_match('/\bfunc_(get_args?|num_args)\s*\(/i', implode('', $lines)) === 1;
    }
}
