"""Waiting for processes that are not this one's own children."""

from __future__ import annotations

import os
import select


def ends(pid: int, patience_s: float = 20.0) -> bool:
    """Whether a process is dead, or dies while it is waited for."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(patience_s * 1000))
    finally:
        os.close(handle)
