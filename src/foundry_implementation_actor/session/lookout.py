"""What a session takes of its host, looked at beside the reading of its stream: processes, memory, disk."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.domain.command import Ended
from foundry_implementation_actor.domain.run import Budget, Cause
from foundry_implementation_actor.system.footprint import Footprint, footprint, held_open
from foundry_implementation_actor.system.supervise import descendants
from foundry_implementation_actor.system.usage import overuse

GLANCE_S = 0.25
"""How often the processes and their memory are looked at, in seconds."""

# A walk over the disk takes at most one part in twenty-one of the time, and starts at most once a second. It does
# not wait while the disk loses room by which a session could be over its limit before long.
_REST, _SHORTEST_REST_S = 20.0, 1.0


class Overrun(NamedTuple):
    """A limit of the host that a session is over: which, and what was seen."""

    cause: Cause
    detail: str


class Lookout:
    """Watches over one session from a thread of its own; `found` is the limit that it is over, once it is.

    Args:
        budget: its limits.
        places: the directories that it may write to, none inside another. What they take before it
            starts is measured here and now.
    """

    def __init__(self, budget: Budget, places: Sequence[Path]) -> None:
        self.found: Overrun | None = None
        self._budget = budget
        self._places = places if budget.disk_bytes or budget.disk_files else ()
        self._devices = {place.stat().st_dev: place for place in self._places}
        self._before = footprint(self._places)
        self._over = threading.Event()

    @contextlib.contextmanager
    def over(self, top: int) -> Iterator[None]:
        """Watch while the context is open; everything runs below the process `top`, 0 when that is not known."""
        thread = threading.Thread(target=self._watch, args=(top,), name="lookout", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self, top: int) -> None:
        walked, rest, free = time.monotonic(), _SHORTEST_REST_S, self._free()
        while self.found is None and not self._over.wait(GLANCE_S):
            # A host without a descriptor left is looked at again a moment later.
            with contextlib.suppress(OSError):
                self.found = self._processes(top)
            now = time.monotonic()
            drained = 2 * (free - self._free()) > self._budget.disk_bytes
            if self.found is None and now - walked >= (_SHORTEST_REST_S if drained else rest):
                free = self._free()
                with contextlib.suppress(OSError):
                    self.found = self._disk(top)
                walked = time.monotonic()
                rest = max(_SHORTEST_REST_S, _REST * (walked - now))

    def _free(self) -> int:
        """Bytes that are free on the disks of its places, whoever else uses them."""
        found = 0
        for place in self._devices.values():
            with contextlib.suppress(OSError):
                room = os.statvfs(place)
                found += room.f_bfree * room.f_frsize
        return found

    def _processes(self, top: int) -> Overrun | None:
        budget = self._budget
        over = overuse(budget.processes, budget.memory_bytes, top) if top else None
        if over is Ended.PROCESSES:
            return Overrun(Cause.PROCESSES, f"had more than {budget.processes:,} processes at once")
        if over is Ended.MEMORY:
            return Overrun(Cause.MEMORY, f"held more than {budget.memory_bytes:,} bytes of memory")
        return None

    def _disk(self, top: int) -> Overrun | None:
        held = held_open(descendants(top) if top else (), self._devices)
        found = footprint(self._places, lambda part: self._over.is_set() or self._grown(part + held) is not None)
        return None if self._over.is_set() else self._grown(found + held)

    def _grown(self, found: Footprint) -> Overrun | None:
        budget = self._budget
        size, files = found.size - self._before.size, found.files - self._before.files
        if budget.disk_bytes and size > budget.disk_bytes:
            return Overrun(Cause.DISK, f"had {size:,} bytes more on disk than at its start")
        if budget.disk_files and files > budget.disk_files:
            return Overrun(Cause.FILES, f"had {files:,} files more on disk than at its start")
        return None
