<?php

/**
 * Runs one test file by PHPUnit in processes of their own and reports what came of it; see ../../php_tests.py.
 *
 * It reads a request (one JSON object) on stdin: `nonce`, `runner` (argv), `interpreter` (argv) and `path` of the
 * test file below the working directory. Its last line on stdout is the nonce and a JSON object: `listed` and
 * `report` (the two XML documents, empty where there is none), `code`, `signal` and `said` (the end of the output).
 * The nonce stays in this process, which never loads the body; so the body cannot answer in its place.
 */

declare(strict_types=1);

namespace Foundry\Gate;

const CONFIGURATIONS = ['phpunit.xml', 'phpunit.dist.xml', 'phpunit.xml.dist'];
const TAIL = 4000;
/** What is in the way of a verdict is off; a body that never stops asking for memory ends soon. */
const PLAIN = ['-d', 'opcache.enable_cli=0', '-d', 'xdebug.mode=off', '-d', 'memory_limit=512M'];

/** The runner's argv; a PHP script is run by the interpreter that the app names. */
function program(array $ask): array
{
    $file = $ask['runner'][0];
    $start = is_file($file) ? (string) file_get_contents($file, false, null, 0, 512) : '';

    return str_contains($start, '<?php') ? [...$ask['interpreter'], ...PLAIN, ...$ask['runner']] : $ask['runner'];
}

/** The option that loads the app's autoloader, where neither the runner's arguments nor its configuration do. */
function bootstrap(array $runner): array
{
    if (preg_grep('/^(--bootstrap|--configuration|--no-configuration|-c)\b/', $runner) !== [] || !is_file('vendor/autoload.php')) {
        return [];
    }
    foreach (array_filter(CONFIGURATIONS, 'is_file') as $file) {
        if (preg_match('/<phpunit\b[^>]*\bbootstrap\s*=/', (string) file_get_contents($file)) === 1) {
            return [];
        }
    }

    return ['--bootstrap', 'vendor/autoload.php'];
}

/** Starts a program whose output goes to a file. */
function start(array $argv, string $output): mixed
{
    return proc_open($argv, [['file', '/dev/null', 'r'], ['file', $output, 'w'], ['file', $output, 'a']], $pipes);
}

/** Waits for a program: its exit code and the signal that ended it, 0 when none did. */
function wait(mixed $process): array
{
    while (($status = proc_get_status($process))['running']) {
        usleep(2000);
    }

    return [$status['exitcode'], $status['signaled'] ? $status['termsig'] : 0];
}

/** What stands in a file, or the end of it; empty when there is none. */
function text(string $file, int $most = 0): string
{
    $text = is_file($file) ? (string) file_get_contents($file) : '';

    return $most > 0 ? substr($text, -$most) : $text;
}

$ask = json_decode((string) stream_get_contents(STDIN), true);
fclose(STDIN);
$folder = sys_get_temp_dir().'/tests-'.bin2hex(random_bytes(16));
mkdir($folder, 0700);
$run = [...program($ask), '--do-not-cache-result', '--colors=never', '--no-coverage', ...bootstrap($ask['runner'])];
$listing = start([...$run, '--list-tests-xml', "$folder/listed.xml", $ask['path']], "$folder/listing");
$running = start([...$run, '--log-junit', "$folder/report.xml", $ask['path']], "$folder/running");
[$code, $signal] = wait($running);
wait($listing);
$answer = ['listed' => text("$folder/listed.xml"), 'report' => text("$folder/report.xml"), 'code' => $code, 'signal' => $signal];
$answer['said'] = text("$folder/running", TAIL);
array_map('unlink', glob("$folder/*") ?: []);
rmdir($folder);
echo "\n", $ask['nonce'], json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR), "\n";
