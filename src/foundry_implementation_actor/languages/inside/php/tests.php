<?php

/**
 * Runs one test file by PHPUnit in processes of their own and reports what came of it; see ../../php_tests.py.
 *
 * It reads a request (one JSON object) on stdin: `nonce`, `runner` (argv), `interpreter` (argv) and `path` of the
 * test file below the working directory. Its last line on stdout is the nonce and a JSON object: `listed` and
 * `report` (the two XML documents, empty where there is none), `story` (TeamCity's lines), `code`, `signal`, `loads`
 * (whether anything loads the app's classes) and `said` (the end of the output).
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

/** Whether the runner's arguments or its configuration say how the app's classes are loaded. */
function is_configured(array $runner): bool
{
    if (preg_grep('/^(--bootstrap|--configuration|--no-configuration|-c)\b/', $runner) !== []) {
        return true;
    }
    foreach (array_filter(CONFIGURATIONS, 'is_file') as $file) {
        if (preg_match('/<phpunit\b[^>]*\bbootstrap\s*=/', (string) file_get_contents($file)) === 1) {
            return true;
        }
    }

    return false;
}

/**
 * Starts a program whose output goes to a file. What it writes to descriptors 3 and 4 comes through pipes: they have
 * no name that could be written over, and nothing can take back what went in.
 */
function start(array $argv, string $output): array
{
    $streams = [['file', '/dev/null', 'r'], ['file', $output, 'w'], ['file', $output, 'a'], ['pipe', 'w'], ['pipe', 'w']];
    $process = proc_open($argv, $streams, $pipes);
    foreach ($pipes as $pipe) {
        stream_set_blocking($pipe, false);
    }

    return [$process, $pipes];
}

/** Waits for a program: its exit code, the signal that ended it (0 when none did), and what came through its pipes. */
function wait(array $started): array
{
    [$process, $pipes] = $started;
    $texts = [3 => '', 4 => ''];
    do {
        $status = proc_get_status($process);
        foreach ($pipes as $number => $pipe) {
            $texts[$number] .= stream_get_contents($pipe);
        }
        if ($status['running']) {
            usleep(2000);
        }
    } while ($status['running']);

    return [$status['exitcode'], $status['signaled'] ? $status['termsig'] : 0, ...$texts];
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
$configured = is_configured($ask['runner']);
$autoloads = is_file('vendor/autoload.php');
$bootstrap = $autoloads && !$configured ? ['--bootstrap', 'vendor/autoload.php'] : [];
$run = [...program($ask), '--do-not-cache-result', '--colors=never', '--no-coverage', ...$bootstrap];
$listing = start([...$run, '--list-tests-xml', 'php://fd/3', $ask['path']], "$folder/listing");
$logs = ['--log-junit', 'php://fd/3', '--log-teamcity', 'php://fd/4'];
$running = start([...$run, ...$logs, $ask['path']], "$folder/running");
[$code, $signal, $report, $story] = wait($running);
[, , $listed] = wait($listing);
$answer = ['listed' => $listed, 'report' => $report, 'story' => $story, 'code' => $code, 'signal' => $signal];
$answer['loads'] = $autoloads || $configured;
$answer['said'] = text("$folder/running", TAIL);
array_map('unlink', glob("$folder/*") ?: []);
rmdir($folder);
echo "\n", $ask['nonce'], json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR), "\n";
