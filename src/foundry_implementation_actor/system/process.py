"""The one place that starts child processes: limits, output capped, whole environment, no shell.

`run` is for this package's own tools (git), which leave nothing behind. Everything that may run
somebody else's code (a session, a grounding tool, a builder) is a `Child`, or `run_contained`:
a supervisor (`supervise.py`) sits above it and kills every descendant when it ends, however it
ends, also when the actor itself is killed. A supervisor that was itself stopped or killed by what it
watches over is replaced by the actor: it kills what is below a stopped one before that one, and what
a killed one has left, which Linux then gives to the actor (a child subreaper) as children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed, Confinement, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.running import Output, Pipes, Running, Stop, Stream, gather
from foundry_implementation_actor.system.supervise import descendants

__all__ = ["Child", "Output", "Stop", "Stream", "find", "run", "run_contained"]

_SUPERVISE = str(Path(__file__).with_name("supervise.py"))
_GLANCE_S = 0.2
_EXIT_PATIENCE_S = 0.5
_KILL_PATIENCE_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36

# Every process that this module started and has not yet waited for; the lock is held while one starts.
_ours: set[int] = set()
_ours_lock = threading.Lock()


class Child(Running):
    """A running program under a supervisor; see `Running`.

    Raises:
        ActorError: UNFIT when the program is not on the command's PATH or cannot be started.
    """

    def __init__(self, command: Command, stop: Stop | None = None) -> None:
        find(command)
        _adopt_orphans()
        with _starting(command), contextlib.ExitStack() as far, contextlib.ExitStack() as near:
            theirs, control = _pipe(far, near)
            said, status = _pipe(near, far)
            held = command.confinement or Confinement()
            words = (str(theirs), str(status), _told(held), *command.argv)
            descriptors = (theirs, status, *held.descriptors, *command.pass_fds)
            self._supervisor = _start(command, (sys.executable, "-I", "-S", _SUPERVISE, *words), descriptors)
            self._since = _start_time(self._supervisor.pid)
            try:
                super().__init__(Pipes(self._fd(Stream.STDOUT), self._fd(Stream.STDERR), control, said), stop)
            except OSError:
                near.close()
                self._let_go()
                raise
            self.top = self._supervisor.pid
            near.pop_all()

    def _let_go(self) -> None:
        self._end_supervisor()
        for pipe in (self._supervisor.stdout, self._supervisor.stderr):
            if pipe is not None:
                pipe.close()

    def _end_supervisor(self) -> None:
        """See that the supervisor and all below it are dead, also when it cannot see to that any more."""
        supervisor, left = self._supervisor, 0
        if not _exits(supervisor, 0.0 if self.lost else _EXIT_PATIENCE_S):
            # It was stopped. While it lives, whatever the program started is still below it.
            left = _kill_all(lambda: descendants(supervisor.pid))
            supervisor.kill()
            _exits(supervisor, _KILL_PATIENCE_S)
        if self.lost or supervisor.returncode != 0:
            left += _kill_all(lambda: _strangers(self._since))
            self.left = left
        _forget(supervisor)

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
    assert command.confinement is None, "only a contained program can be confined"
    started = time.monotonic()
    with _starting(command):
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
    finally:
        _forget(child)
    return Completed(command.argv, child.returncode, stdout, stderr, ended, time.monotonic() - started)


def _told(held: Confinement) -> str:
    """A confinement in the words of `supervise.py`."""
    uid, gid = held.user or (-1, -1)
    doors = "+".join(f"{address}:{port}" for address, port in held.doors)
    return f"{held.rules},{held.filter},{uid},{gid},{held.reads_all:d},{held.wire},{doors}"


def _start(command: Command, argv: Sequence[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    with _stdin(command.stdin) as stdin, _ours_lock:
        child = subprocess.Popen(
            argv, cwd=command.cwd, env=command.env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=descriptors, start_new_session=True, bufsize=0,
        )  # fmt: skip
        _ours.add(child.pid)
        return child


@contextlib.contextmanager
def _starting(command: Command) -> Iterator[None]:
    """A working directory that is gone, a NUL in the arguments, no process or descriptor left: UNFIT."""
    try:
        yield
    except (OSError, ValueError) as error:
        told = [error.strerror, error.filename] if isinstance(error, OSError) else [str(error)]
        why = ", ".join(str(part) for part in told if part)
        raise ActorError(Code.UNFIT, f"{command.argv[0]!r} could not be started: {why}") from error


def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
    """A new pipe's two ends, each closed by its stack."""
    ends = os.pipe()
    for stack, end in zip((reader, writer), ends, strict=True):
        stack.callback(os.close, end)
    return ends


def _adopt_orphans() -> None:
    """Become the parent of whatever a killed supervisor leaves; without it that would be nobody's to find."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _exits(child: subprocess.Popen[bytes], patience_s: float) -> bool:
    try:
        child.wait(patience_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _forget(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is not None:
        _ours.discard(child.pid)


def _kill_all(find_some: Callable[[], Sequence[int]]) -> int:
    """Kill processes until there are no more, or for 10 seconds: how many are left."""
    give_up = time.monotonic() + _KILL_PATIENCE_S
    while (found := find_some()) and time.monotonic() < give_up:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    return len(found)


def _strangers(since: int) -> list[int]:
    """The living children that this process has not started: orphans of a killed supervisor.

    Such an orphan is in no session of this process's, since a supervisor starts its program in a new one
    and no process can join an older one; and it is not older than the supervisor (`since`, in ticks).
    """
    while True:
        with _ours_lock:
            found = [(pid, stat[0]) for pid, stat in _all_processes() if pid not in _ours and _is_orphan(stat, since)]
        dead = [pid for pid, state in found if state in b"ZX"]
        for pid in dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if len(found) > len(dead) or not dead:  # else what a dead one has left may have been passed over
            return [pid for pid, _ in found if pid not in dead]


def _is_orphan(stat: Sequence[bytes], since: int) -> bool:
    return int(stat[1]) == os.getpid() and int(stat[3]) != os.getsid(0) and int(stat[19]) >= since


def _all_processes() -> Iterator[tuple[int, list[bytes]]]:
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):  # noqa: PTH208 - names are enough
        stat = _stat(pid)
        if stat:
            yield pid, stat


def _start_time(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[19]) if stat else 0


def _stat(pid: int) -> list[bytes]:
    """The fields of proc(5)'s stat from the third on: state, parent, group, session, …; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


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
