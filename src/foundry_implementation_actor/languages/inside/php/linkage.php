<?php

/**
 * Looks whether every name that one class body uses leads somewhere; see ../../php_probe.py.
 *
 * It reads a request (one JSON object) on stdin: `nonce`, `root`, `path` (of the body, below root),
 * `class` and `test` (whether it is a test). It
 * answers with its last line on stdout: the nonce and a JSON object `{findings, cause}`. The class is
 * loaded, which lets the engine refuse bad overrides; none of its methods is called.
 */

declare(strict_types=1);

namespace Foundry\Gate;

require __DIR__.'/report.php';
require __DIR__.'/names.php';
require __DIR__.'/scope.php';
require __DIR__.'/types.php';
require __DIR__.'/calls.php';
require __DIR__.'/members.php';
require __DIR__.'/body.php';
require __DIR__.'/overrides.php';

use PhpParser\Error;
use PhpParser\NodeTraverser;
use PhpParser\NodeVisitor\NameResolver;
use PhpParser\ParserFactory;

/** Where a library of the host lies, by PHP's own search path or Debian's; empty when it is not there. */
function on_host(string $file): string
{
    $debian = "/usr/share/php/$file";

    return stream_resolve_include_path($file) ?: (is_file($debian) ? $debian : '');
}

/** Loads the app's autoloader, PHPUnit for a test, and a parser: the app's own, else the host's. */
function prepare(string $root, bool $test, Report $report): void
{
    if (!is_file("$root/vendor/autoload.php")) {
        $report->give_up('the app has no vendor/autoload.php, so its classes cannot be found; run composer install');
    }
    require_once "$root/vendor/autoload.php";
    if ($test && !class_exists('PHPUnit\Framework\TestCase') && ($place = on_host('PHPUnit/Autoload.php')) !== '') {
        require_once $place;
    }
    if (!class_exists(ParserFactory::class) && ($place = on_host('PhpParser/autoload.php')) !== '') {
        require_once $place;
    }
    if (!class_exists(ParserFactory::class)) {
        $report->give_up('nikic/php-parser is not installed; on Debian: apt-get install php-parser');
    }
}

/** The syntax tree of a file, every name resolved. */
function tree(string $file): array
{
    $factory = new ParserFactory();
    $parser = method_exists($factory, 'createForHostVersion')
        ? $factory->createForHostVersion()
        : $factory->create(ParserFactory::PREFER_PHP7);
    $traverser = new NodeTraverser();
    $traverser->addVisitor(new NameResolver());

    return $traverser->traverse($parser->parse((string) file_get_contents($file)) ?? []);
}

/** Everything of one request, in order; the report says what was found or why nothing could be said. */
function look(array $ask, Report $report): void
{
    $file = "{$ask['root']}/{$ask['path']}";
    prepare($ask['root'], $ask['test'], $report);
    try {
        $tree = tree($file);
    } catch (Error $error) {
        $report->give_up('php-parser cannot read this body: '.$error->getMessage());
    }
    if (!Names::declared($ask['class'])) {
        $report->loads($file, static fn () => require_once $file);
    }
    if (!Names::declared($ask['class'])) {
        $report->add('class-missing', 1, "loading the file does not declare {$ask['class']}");
        $report->close();
    }
    $report->loads('', function () use ($ask, $tree, $report): void {
        (new Overrides($ask['class'], $ask['root']))->check($report);
        (new Body($tree, $ask['root'], $report))->check();
    });
    $report->close();
}

$ask = json_decode((string) stream_get_contents(STDIN), true);
fclose(STDIN);
ini_set('display_errors', '0');
error_reporting(E_ALL);
$report = new Report($ask['nonce'], "{$ask['root']}/{$ask['path']}");
unset($ask['nonce']);
look($ask, $report);
