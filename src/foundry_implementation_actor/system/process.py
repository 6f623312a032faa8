"""The one place that starts child processes: limits, output capped, whole environment, no shell.

`run` is for this package's own tools (git), which leave nothing behind. Everything that may run
somebody else's code (a session, a grounding tool, a builder) is a `Child`, or `run_contained`:
a supervisor (`supervise.py`) sits above it and kills every descendant when it ends, however it
ends, also when the actor itself is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code

_SUPERVISE = str(Path(__file__).with_name("supervise.py"))
_CHUNK = 65_536
_PIPE = 1024 * 1024  # what Linux lets any user ask for
_GLANCE_S = 0.2


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


class Child:
    """A running program under a supervisor. A context manager: leaving it ends the program.

    After a read has brought ENDED, `code` is its exit code (negative for a signal, 126 when it
    could not be started) and `left` counts descendants that may still live (0 unless the kernel
    holds them or the supervisor was killed).

    Raises:
        ActorError: UNFIT when the program is not on the command's PATH or cannot be started.
    """

    def __init__(self, command: Command, stop: Stop | None = None) -> None:
        find(command)
        self.code: int | None = None
        self.left = 0
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        supervise = (sys.executable, "-I", "-S", _SUPERVISE, str(control), str(status), *command.argv)
        try:
            self._supervisor = _start(command, supervise, (control, status, *command.pass_fds))
        except ActorError:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            os.close(control)
            os.close(status)
        # A program that exits with its pipe full may drop the rest: the claude CLI loses its result that way.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._fd(Stream.STDOUT), fcntl.F_SETPIPE_SZ, _PIPE)
        self._selector = selectors.DefaultSelector()
        self._open = {self._fd(Stream.STDOUT): Stream.STDOUT, self._fd(Stream.STDERR): Stream.STDERR}
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
        """Kill the program and every descendant; returns when they are dead. May be called again."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
        self._supervisor.wait()
        if self.code is None:
            self._take_status()
        self._selector.close()
        for pipe in (self._supervisor.stdout, self._supervisor.stderr):
            if pipe is not None:
                pipe.close()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def _fd(self, stream: Stream) -> int:
        pipe = self._supervisor.stdout if stream is Stream.STDOUT else self._supervisor.stderr
        assert pipe is not None
        return pipe.fileno()

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

    def _take_status(self) -> None:
        word, _, number = os.read(self._status, 64).decode().partition(" ")
        if word == "exit":
            self.code = int(number)
        elif word == "left":
            self.code, self.left = -signal.SIGKILL, int(number)
        elif word:
            self.code = 126
        else:
            # The supervisor itself was killed: what it guarded may live on and hold the pipes open.
            self.code, self.left = -signal.SIGKILL, 1
            for descriptor in self._open:
                self._selector.unregister(descriptor)
            self._open.clear()


def find(command: Command) -> str:
    """The full path of a command's program.

    Raises:
        ActorError: UNFIT when it is not on the command's own PATH.
    """
    path = shutil.which(command.argv[0], path=command.env.get("PATH", os.defpath))
    if path is None:
        raise ActorError(
            Code.UNFIT, f"the program {command.argv[0]!r} was not found", hint="install it or put it on PATH"
        )
    return path


def run_contained(command: Command, stop: Stop | None = None) -> Completed:
    """Run somebody else's program to its end, within its time and output limits.

    Raises:
        ActorError: UNFIT when the program is not on the command's PATH or cannot be started.
    """
    started = time.monotonic()
    kept: dict[Stream, list[bytes]] = {Stream.STDOUT: [], Stream.STDERR: []}
    size, ended = 0, Ended.EXIT
    with Child(command, stop) as child:
        while True:
            output = child.read(max(0.0, started + command.timeout_s - time.monotonic()))
            if output.stream in kept:
                size += len(output.chunk)
                kept[output.stream].append(output.chunk)
            ended = _verdict(output.stream, size > command.output_limit)
            if ended is not Ended.EXIT or output.stream is Stream.ENDED:
                break
    return Completed(
        command.argv, child.code if child.code is not None else -signal.SIGKILL,
        b"".join(kept[Stream.STDOUT]), b"".join(kept[Stream.STDERR]), ended, time.monotonic() - started,
    )  # fmt: skip


def _verdict(stream: Stream, over: bool) -> Ended:
    if over:
        return Ended.OUTPUT
    return {Stream.QUIET: Ended.TIMEOUT, Stream.STOPPED: Ended.STOPPED}.get(stream, Ended.EXIT)


def run(command: Command, stop: Stop | None = None) -> Completed:
    """Run one of this package's own tools; its process group is killed at the time limit.

    Raises:
        ActorError: UNFIT when the program is not on the command's PATH or cannot be started.
    """
    started = time.monotonic()
    child = _start(command, (find(command), *command.argv[1:]), command.pass_fds)
    ended = Ended.EXIT
    try:
        while True:
            try:
                stdout, stderr = child.communicate(timeout=_GLANCE_S)
                break
            except subprocess.TimeoutExpired:
                ended = _overdue(started + command.timeout_s, stop)
                if ended is not Ended.EXIT:
                    _kill_group(child)
    except BaseException:
        _kill_group(child)
        child.communicate()
        raise
    return Completed(command.argv, child.returncode, stdout, stderr, ended, time.monotonic() - started)


def _start(command: Command, argv: Sequence[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    try:
        with _stdin(command.stdin) as stdin:
            return subprocess.Popen(
                argv, cwd=command.cwd, env=command.env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                pass_fds=descriptors, start_new_session=True, bufsize=0,
            )  # fmt: skip
    except (OSError, ValueError) as error:
        # A working directory that is gone, a NUL or too much in the arguments, no process left to have.
        why = f"{error.strerror}, {error.filename}" if isinstance(error, OSError) else str(error)
        raise ActorError(Code.UNFIT, f"{command.argv[0]!r} could not be started: {why}") from error


def _overdue(deadline: float, stop: Stop | None) -> Ended:
    if stop is not None and stop.is_set():
        return Ended.STOPPED
    return Ended.TIMEOUT if time.monotonic() > deadline else Ended.EXIT


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def _stdin(content: bytes) -> Iterator[int]:
    """A descriptor that reads as `content` and then as end of file; never the actor's own stdin."""
    descriptor = os.memfd_create("stdin") if content else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if content:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
