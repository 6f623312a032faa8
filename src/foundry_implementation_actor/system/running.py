"""Reading what a running program says until it has ended, whoever started it."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import selectors
import signal
import time
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Self

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.system.usage import GLANCE_S, bounded, overuse

_CHUNK = 65_536
_END_PATIENCE_S = 2.0
_PIPE = 1024 * 1024  # what Linux lets any user ask for
_STATUS = re.compile(rb"(exit|left|errno) (-?[0-9]{1,9})")


class Stop:
    """A flag that a waiting read notices at once; once set it stays set."""

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._set = False

    def set(self) -> None:
        """Ask everything that watches this flag to stop."""
        self._set = True
        os.eventfd_write(self._event, 1)

    def is_set(self) -> bool:
        """Whether it was asked."""
        return self._set

    def fileno(self) -> int:
        """A descriptor that is readable once the flag is set."""
        return self._event

    def __del__(self) -> None:
        os.close(self._event)


class Stream(StrEnum):
    """What a read from a child brought."""

    STDOUT = "stdout"
    STDERR = "stderr"
    QUIET = "quiet"
    STOPPED = "stopped"
    ENDED = "ended"


class Output(NamedTuple):
    """One read: where it came from, and its bytes (empty unless STDOUT or STDERR)."""

    stream: Stream
    chunk: bytes = b""


class Pipes(NamedTuple):
    """The near ends of a running program's pipes.

    Closing `control` ends the program and all that it started. `status` brings one word when they are dead,
    and then its end; see `supervise.py`.
    """

    stdout: int
    stderr: int
    control: int
    status: int


class Running:
    """A running program with somebody who ends it. A context manager: leaving it ends the program.

    After a read has brought ENDED, `code` is its exit code (negative for a signal, 126 when it
    could not be started) and `left` counts descendants that may still live (0 unless the kernel
    holds them or whoever watches over them was killed). `started` is False when it could not be started,
    `lost` is True when nobody said how it ended. `top` is the process below which all of it runs, 0 when
    that is not known.
    """

    def __init__(self, pipes: Pipes, stop: Stop | None = None) -> None:
        self.code: int | None = None
        self.left = 0
        self.started = True
        self.lost = False
        self.top = 0
        self._control, self._status = pipes.control, pipes.status
        # A program that exits with its pipe full may drop the rest: the claude CLI loses its result that way.
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipes.stdout, fcntl.F_SETPIPE_SZ, _PIPE)
        self._selector = selectors.DefaultSelector()
        self._open = {pipes.stdout: Stream.STDOUT, pipes.stderr: Stream.STDERR}
        for descriptor in (*self._open, self._status):
            self._selector.register(descriptor, selectors.EVENT_READ)
        if stop is not None:
            self._selector.register(stop, selectors.EVENT_READ)
        self._stop = stop

    def read(self, timeout_s: float) -> Output:
        """The next output, or QUIET after `timeout_s` seconds, or STOPPED, or ENDED for good."""
        deadline = time.monotonic() + timeout_s
        while self._open or self.code is None:
            if self._stop is not None and self._stop.is_set():
                return Output(Stream.STOPPED)
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                return Output(Stream.QUIET)
            for key, _ in ready:
                output = self._take(key.fd)
                if output is not None:
                    return output
        return Output(Stream.ENDED)

    def end(self) -> None:
        """End the program and every descendant; returns when they are dead. May be called again.

        Whoever watches over the program has 2 seconds to say that it is done; then it counts as lost.
        """
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
        if self.code is None:
            with selectors.DefaultSelector() as told:
                told.register(self._status, selectors.EVENT_READ)
                self._take_status(silent=not told.select(_END_PATIENCE_S))
        self._selector.close()
        self._let_go()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def _let_go(self) -> None:
        """Close the pipes of its output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def _take(self, descriptor: int) -> Output | None:
        if descriptor == self._status:
            self._selector.unregister(descriptor)
            self._take_status()
        elif descriptor in self._open:
            chunk = os.read(descriptor, _CHUNK)
            if chunk:
                return Output(self._open[descriptor], chunk)
            self._selector.unregister(descriptor)
            del self._open[descriptor]
        return None

    def _take_status(self, *, silent: bool = False) -> None:
        # A session may have got hold of the pipe and written into it: what is no status counts as none.
        said = _STATUS.fullmatch(b"" if silent else os.read(self._status, 64))
        word, number = (said[1], int(said[2])) if said else (b"", 0)
        if word == b"exit":
            self.code = number
        elif word == b"left":
            self.code, self.left = -signal.SIGKILL, number
        elif word:
            self.code, self.started = 126, False
        else:
            # Whoever watched over it was killed or stopped: what was guarded may live on and hold the pipes open.
            self.code, self.left, self.lost = -signal.SIGKILL, 1, True
            for descriptor in self._open:
                self._selector.unregister(descriptor)
            self._open.clear()


Watch = Callable[[], Ended | None]
"""Says how a program has to end by what it was seen to do; None while it may go on."""


def gather(running: Running, command: Command, started: float, watch: Watch | None = None) -> Completed:
    """Read a program to its end, within the time (from `started`, monotonic) and other limits of its command.

    `watch` is asked ten times a second.
    """
    kept: dict[Stream, list[bytes]] = {Stream.STDOUT: [], Stream.STDERR: []}
    limits = _Limits(command, started, running.top, watch)
    with running:
        while True:
            output = running.read(limits.patience_s)
            if output.stream in kept:
                kept[output.stream].append(output.chunk)
            ended = limits.verdict(output)
            if ended is not Ended.EXIT or output.stream is Stream.ENDED:
                break
    return Completed(
        command.argv, running.code if running.code is not None else -signal.SIGKILL,
        b"".join(kept[Stream.STDOUT]), b"".join(kept[Stream.STDERR]), ended, time.monotonic() - started,
    )  # fmt: skip


class _Limits:
    """What a program may take, and what it has taken so far."""

    def __init__(self, command: Command, started: float, top: int, watch: Watch | None) -> None:
        self._command = command
        self._top = top if bounded(command) else 0
        self._watch = watch
        self._size = 0
        self._deadline = started + command.timeout_s
        self._glance = time.monotonic() + GLANCE_S if self._top or watch else math.inf

    @property
    def patience_s(self) -> float:
        """How long a read may wait."""
        return max(0.0, min(self._deadline, self._glance) - time.monotonic())

    def verdict(self, output: Output) -> Ended:
        """How the program has to end after this output; EXIT when it may go on."""
        self._size += len(output.chunk)
        over = self._overuse() if output.stream is not Stream.ENDED else None
        if over is not None:
            return over
        if self._size > self._command.output_limit:
            return Ended.OUTPUT
        if output.stream is Stream.QUIET and time.monotonic() >= self._deadline:
            return Ended.TIMEOUT
        return Ended.STOPPED if output.stream is Stream.STOPPED else Ended.EXIT

    def _overuse(self) -> Ended | None:
        if time.monotonic() < self._glance:
            return None
        found = self._watch() if self._watch else None
        if found is None and self._top:
            found = overuse(self._command.most_processes, self._command.most_memory, self._top)
        self._glance = time.monotonic() + GLANCE_S
        return found
