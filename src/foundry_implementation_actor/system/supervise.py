"""Run one program and leave nothing of it behind; `process.Child` starts this file as a script.

    python -I -S supervise.py CONTROL STATUS PROGRAM [ARGUMENT...]

It is a child subreaper, so every descendant stays below it, also one that forked twice or opened a
session of its own. When the program ends, when `CONTROL` reaches end of file (the actor asked, or
died by kill -9) or when it is told to terminate, it kills all of them and only then writes to
`STATUS` how the program ended: `exit N` (negative for a signal), `errno N` when it could not be
started, or `left N` when N descendants could not be killed. When the program stops it (SIGSTOP), the
death of the actor wakes it. Standard library only: start-up counts.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_PATIENCE_S = 10.0


def descendants(root: int) -> list[int]:
    """Every living descendant of a process, by the parents that /proc states."""
    below: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib would double the start-up
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - the same
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if state not in {b"Z", b"X"}:
                below.setdefault(int(parent), []).append(int(name))
    found, queue = [], list(below.get(root, []))
    while queue:
        found.append(queue.pop())
        queue.extend(below.get(found[-1], []))
    return found


def _reap(program: int) -> tuple[bool, int | None]:
    """Collect every child that has ended: (whether any child is left, the program's code or None)."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, code
        if pid == 0:
            return True, code
        if pid == program:
            code = os.waitstatus_to_exitcode(status)


def _start(argv: list[str]) -> tuple[int, int]:
    """Start the program in a session of its own: (its pid, 0 or the errno of a failed start)."""
    reading, writing = os.pipe()
    prctl = ctypes.CDLL(None).prctl
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            # So that not even killing this supervisor frees the program.
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
        except OSError as error:
            os.write(writing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with os.fdopen(reading, "rb") as failure:
        return pid, int(failure.read() or 0)


def _let_go_of_output() -> None:
    """Give up this process's own copies of the pipes, so that the reader sees their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _wait(program: int, control: int, wake: int) -> int | None:
    """Wait for the program's end or the order to end it: its code, or None when it still runs."""
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wake in ready and signal.SIGTERM in os.read(wake, 4096):
            return None
        _, code = _reap(program)
        if code is not None or control in ready:
            return code


def _end_all(program: int, code: int | None) -> str:
    """Kill every descendant: the line that says how the program ended."""
    give_up = time.monotonic() + _KILL_PATIENCE_S
    while time.monotonic() < give_up:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        some_left, ended = _reap(program)
        code = ended if ended is not None else code
        if not some_left:
            return f"exit {code if code is not None else -signal.SIGKILL}"
        time.sleep(0.001)
    return f"left {len(descendants(os.getpid()))}"


def main(argv: list[str]) -> None:
    """Supervise the program of `argv[3:]`; see the module's first lines."""
    control, status = int(argv[1]), int(argv[2])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    program, failure = _start(argv[3:])
    _let_go_of_output()
    line = _end_all(program, None if failure else _wait(program, control, wake))
    os.write(status, f"errno {failure}".encode() if failure else line.encode())


if __name__ == "__main__":
    main(sys.argv)
