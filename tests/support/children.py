"""The processes that this one started, directly or through a child that died first."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from pathlib import Path
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_MS = 1_000

_expected: set[int] = set()


class Child(NamedTuple):
    """A living child: its process id and its command line, words joined by spaces."""

    pid: int
    command: str


def adopt_orphans() -> None:
    """Make this process the parent of whatever its descendants leave behind (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER was refused")


def expect(pid: int) -> None:
    """Let this child live on after the test: it belongs to a fixture of a wider scope."""
    _expected.add(pid)


def forget(pid: int) -> None:
    """The fixture that owned this child has ended it."""
    _expected.discard(pid)


def leftovers() -> list[Child]:
    """End and name the children that live on though nobody expects them.

    A child that has been killed needs a moment to die, so each gets a second to be gone.
    """
    return [child for pid in sorted(_children() - _expected) if (child := _end(pid))]


def _children() -> set[int]:
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(int(word) for word in listing.read_text().split())
        except FileNotFoundError:
            continue  # the thread ended meanwhile
    return found


def _end(pid: int) -> Child | None:
    """Reap a child that is dead or dying; kill one that is not, and say what it was."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        return None if _dead_within(handle, _PATIENCE_MS) else _kill(pid, handle)
    finally:
        os.close(handle)
        _reap(pid)


def _dead_within(handle: int, patience_ms: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(patience_ms))


def _kill(pid: int, handle: int) -> Child:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    _dead_within(handle, _PATIENCE_MS)
    return Child(pid, b" ".join(words).decode(errors="replace").strip())


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # whoever started it was quicker
