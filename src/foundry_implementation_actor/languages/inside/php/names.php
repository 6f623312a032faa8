<?php

declare(strict_types=1);

namespace Foundry\Gate;

use PhpParser\Node;
use PhpParser\Node\Expr;

/** Which names lead somewhere, and which the body itself asks about before it uses them. */
final class Names
{
    private const ASKING = [
        'class_exists', 'interface_exists', 'trait_exists', 'enum_exists', 'function_exists', 'method_exists',
        'property_exists', 'defined', 'is_callable', 'is_a', 'is_subclass_of', 'define', 'class_alias',
    ];
    /** What PHP has under other systems and other ways to start it. */
    private const ELSEWHERE = '/^(php_windows|sapi_windows|phpdbg|apache|fastcgi|litespeed)_/i';

    /** @var array<string, true> names that the file asks about, in lower case */
    private array $asked = [];
    /** Whether the file itself loads other files: then classes may be there that no autoloader finds. */
    private bool $includes = false;
    /** @var list<string> extensions that the file or the app asks for and that this host lacks */
    private array $lacking;

    public function __construct(array $tree, private string $root)
    {
        $this->lacking = self::wanted($root);
        Walk::over($tree, function (Node $node): void {
            $this->includes = $this->includes || $node instanceof Expr\Include_ || $node instanceof Expr\Eval_;
            $name = $node instanceof Expr\FuncCall && $node->name instanceof Node\Name ? $node->name->toLowerString() : '';
            $extension = $name === 'extension_loaded' ? ($node->args[0]->value->value ?? '') : '';
            if ($extension !== '' && !extension_loaded($extension)) {
                $this->lacking[] = $extension;
            }
            if (in_array($name, self::ASKING, true)) {
                Walk::over($node->args, fn (Node $part) => $this->note($part));
            }
        });
    }

    /** Whether a class, interface, trait or enum of that name is loaded already. */
    public static function declared(string $name): bool
    {
        return class_exists($name, false) || interface_exists($name, false) || trait_exists($name, false)
            || enum_exists($name, false);
    }

    /** Whether there is a class, interface, trait or enum of that name. */
    public static function known(string $name): bool
    {
        return class_exists($name) || interface_exists($name) || trait_exists($name) || enum_exists($name);
    }

    /** Whether the file asks about the name before it uses it, or it may be of an extension or a host that is not here. */
    public function asked(string $name): bool
    {
        $name = ltrim($name, '\\');
        $elsewhere = preg_match(self::ELSEWHERE, $name) === 1 || ($this->lacking !== [] && !str_contains($name, '\\'));

        return $elsewhere || $this->mentioned($name);
    }

    /** Whether the file asks about the name, or about a member of that name. */
    public function mentioned(string $name): bool
    {
        return isset($this->asked[strtolower($name)]);
    }

    /** Whether a class that no autoloader finds may be there all the same. */
    public function class_may_be_there(string $class): bool
    {
        $short = preg_quote(substr((string) strrchr("\\$class", '\\'), 1), '/');

        return $this->asked($class)
            || ($this->includes && $this->written_in_app("/^\s*(\w+\s+)*(class|interface|trait|enum)\s+$short\b/mi"));
    }

    /** Whether the app has a class that says it implements an interface of that short name, and has such a method. */
    public function implementor_has(string $interface, string $method): bool
    {
        $short = preg_quote(substr((string) strrchr("\\$interface", '\\'), 1), '/');
        $own = preg_quote($method, '/');

        return $this->written_in_app("/\bimplements\b[^{;]*\b$short\b[^{]*\{.*\bfunction\s+&?$own\s*\(/is");
    }

    /** Whether some file of the app other than its dependencies has this text; a look at the last moment. */
    public function written_in_app(string $pattern): bool
    {
        foreach ($this->files() as $file) {
            if (preg_match($pattern, (string) file_get_contents($file)) === 1) {
                return true;
            }
        }

        return false;
    }

    /** @return \Generator<string> the app's own PHP files, at most 5,000 */
    private function files(): \Generator
    {
        $inside = new \RecursiveDirectoryIterator($this->root, \FilesystemIterator::SKIP_DOTS);
        $own = new \RecursiveCallbackFilterIterator($inside, static fn (\SplFileInfo $entry): bool => !$entry->isLink()
            && !in_array($entry->getFilename(), ['vendor', 'node_modules', '.git', '.foundry'], true));
        $left = 5000;
        foreach (new \RecursiveIteratorIterator($own, \RecursiveIteratorIterator::LEAVES_ONLY, 16) as $entry) {
            if ($entry->getExtension() === 'php' && $left-- > 0) {
                yield $entry->getPathname();
            }
        }
    }

    /** @return list<string> the extensions that composer.json requires and this host lacks */
    private static function wanted(string $root): array
    {
        $composer = is_file("$root/composer.json") ? (string) file_get_contents("$root/composer.json") : '';
        preg_match_all('/"ext-([\w-]+)"\s*:/', $composer, $wanted);

        return array_values(array_filter($wanted[1], static fn (string $one): bool => !extension_loaded($one)));
    }

    private function note(Node $part): void
    {
        if ($part instanceof Node\Scalar\String_) {
            $this->asked[strtolower(ltrim($part->value, '\\'))] = true;
        }
        if ($part instanceof Node\Name) {
            $this->asked[$part->toLowerString()] = true;
        }
    }
}

/** A walk over a syntax tree, outer nodes first. */
final class Walk
{
    /**
     * @param mixed                $part  a node, or a list of nodes
     * @param callable(Node): mixed $enter false means: do not go inside
     */
    public static function over(mixed $part, callable $enter): void
    {
        if (is_array($part)) {
            foreach ($part as $one) {
                self::over($one, $enter);
            }
        }
        if ($part instanceof Node && $enter($part) !== false) {
            self::inside($part, $enter);
        }
    }

    /** The same for what a node holds, not the node itself. */
    public static function inside(Node $node, callable $enter): void
    {
        foreach ($node->getSubNodeNames() as $name) {
            self::over($node->$name, $enter);
        }
    }
}
