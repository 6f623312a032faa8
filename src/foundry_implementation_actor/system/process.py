"""The one place that starts child processes: limits, output capped, whole environment, no shell.

`run` is for this package's own tools (git), which leave nothing behind. Everything that may run
somebody else's code (a session, a grounding tool, a builder) is a `Child`, or `run_contained`:
a supervisor (`supervise.py`) sits above it and kills every descendant when it ends, however it
ends, also when the actor itself is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.running import Output, Pipes, Running, Stop, Stream, gather

__all__ = ["Child", "Output", "Stop", "Stream", "find", "run", "run_contained"]

_SUPERVISE = str(Path(__file__).with_name("supervise.py"))
_GLANCE_S = 0.2


class Child(Running):
    """A running program under a supervisor; see `Running`.

    Raises:
        ActorError: UNFIT when the program is not on the command's PATH or cannot be started.
    """

    def __init__(self, command: Command, stop: Stop | None = None) -> None:
        find(command)
        theirs, control = os.pipe()
        said, status = os.pipe()
        supervise = (sys.executable, "-I", "-S", _SUPERVISE, str(theirs), str(status), *command.argv)
        try:
            self._supervisor = _start(command, supervise, (theirs, status, *command.pass_fds))
        except ActorError:
            os.close(control)
            os.close(said)
            raise
        finally:
            os.close(theirs)
            os.close(status)
        super().__init__(Pipes(self._fd(Stream.STDOUT), self._fd(Stream.STDERR), control, said), stop)

    def _let_go(self) -> None:
        self._supervisor.wait()
        for pipe in (self._supervisor.stdout, self._supervisor.stderr):
            if pipe is not None:
                pipe.close()

    def _fd(self, stream: Stream) -> int:
        pipe = self._supervisor.stdout if stream is Stream.STDOUT else self._supervisor.stderr
        assert pipe is not None
        return pipe.fileno()


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
    return gather(Child(command, stop), command, started)


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
