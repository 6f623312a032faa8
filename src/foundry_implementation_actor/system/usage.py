"""What a process and all below it use at this moment, as /proc tells it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Sequence
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Ended
from foundry_implementation_actor.system.footprint import held_open
from foundry_implementation_actor.system.supervise import descendants

GLANCE_S = 0.1
"""How often a bounded command is looked at, in seconds."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def bounded(command: Command) -> bool:
    """Whether a command says how much it may use."""
    return bool(command.most_processes or command.most_memory)


def overuse(most_processes: int, most_memory: int, top: int) -> Ended | None:
    """The bound that the processes below `top` are over at this moment; None when they keep to all.

    Memory is in bytes; 0 is no bound. A process that has ended and that its parent does not collect counts: it
    keeps its number, of which a host has so many. Files that lie in memory count while they are held open.
    """
    below = descendants(top, dead=True) if most_processes or most_memory else []
    if most_processes and len(below) > most_processes:
        return Ended.PROCESSES
    in_files = held_open(below, _memory_devices()).size if most_memory else 0
    if most_memory and _resident(below) + in_files > most_memory and _shared_out(below, in_files) > most_memory:
        return Ended.MEMORY
    return None


@functools.cache
def _memory_devices() -> frozenset[int]:
    """Where files without a name lie in memory: those of memfd_create, and what was deleted of /dev/shm."""
    descriptor = os.memfd_create("device")
    try:
        found = {os.fstat(descriptor).st_dev}
    finally:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        found.add(Path("/dev/shm").stat().st_dev)  # noqa: S108 - nothing is written to it
    return frozenset(found)


def _resident(pids: Sequence[int]) -> int:
    """Bytes in memory; what several of them share counts for each, so that it is never too little."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    return pages * _PAGE


def _shared_out(pids: Sequence[int], in_files: int) -> int:
    """Bytes in memory, each counted once. Slow, and for processes that may be looked into only.

    `in_files` are bytes of files in memory, of which a part may be mapped and so be counted already.
    """
    found = mapped = 0
    for pid in pids:
        try:
            rolled = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
        except OSError:
            found += _resident([pid])
            continue
        for line in rolled.splitlines():
            if line.startswith(b"Pss:"):
                found += int(line.split()[1]) * 1024
            elif line.startswith(b"Pss_Shmem:"):
                mapped += int(line.split()[1]) * 1024
    return found + max(0, in_files - mapped)
