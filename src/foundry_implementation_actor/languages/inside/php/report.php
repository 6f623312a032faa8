<?php

declare(strict_types=1);

namespace Foundry\Gate;

/** What was found, printed once, whichever way the process ends. */
final class Report
{
    private const FATAL = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_RECOVERABLE_ERROR;

    /** @var list<array{rule: string, line: int, message: string}> */
    private array $findings = [];
    private string $cause = '';
    private string $loading = '';
    private bool $closed = false;

    public function __construct(private string $nonce, private string $file)
    {
        register_shutdown_function(fn () => $this->closed || $this->ended_early());
    }

    public function add(string $rule, int $line, string $message): void
    {
        $this->findings[] = ['rule' => $rule, 'line' => $line, 'message' => $message];
    }

    /** Ends the process saying why nothing can be said. */
    public function give_up(string $cause): never
    {
        $this->cause = $cause;
        $this->close();
    }

    public function close(): never
    {
        $this->closed = true;
        $answer = ['findings' => $this->findings, 'cause' => $this->cause];
        fwrite(STDOUT, "\n".$this->nonce.json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR)."\n");
        exit(0);
    }

    /**
     * Does what may load code. An error in `$file`, or raised by the engine for it, is the body's; one in another
     * file means that something it stands on is broken.
     */
    public function loads(string $file, callable $action): void
    {
        $this->loading = $file;
        try {
            $action();
        } catch (\Throwable $error) {
            $this->engine($error->getFile(), $error->getLine(), $error->getMessage());
        }
        $this->loading = '';
    }

    private function engine(string $file, int $line, string $message): never
    {
        if ($file !== $this->file) {
            $this->give_up("loading $file fails: $message");
        }
        $this->add('engine', $line, $message);
        $this->close();
    }

    private function ended_early(): void
    {
        $last = error_get_last();
        if ($last !== null && ($last['type'] & self::FATAL) !== 0) {
            $this->engine($last['file'], $last['line'], strtok($last['message'], "\n") ?: 'fatal error');
        }
        if ($this->loading !== '') {
            $this->add('ends-process', 1, 'the file ends the process when it is loaded');
            $this->close();
        }
        $this->give_up('the process ended before the body was looked at');
    }
}
