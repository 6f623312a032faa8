"""Where a candidate is judged: in a private view of the host, or, where that is refused, placed and held meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from functools import cache

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.gate import bubblewrap
from foundry_implementation_actor.gate.held import holding_refusal
from foundry_implementation_actor.gate.placement import Placement
from foundry_implementation_actor.system.process import Stop


class Halt:
    """Ends every isolation that was opened with it, also one that is opened later; nothing judged there lands."""

    def __init__(self) -> None:
        self._open: set[Stop] = set()
        self._lock = threading.Lock()
        self._set = False

    def set(self) -> None:
        """End what runs now, and let nothing more run. May be called in any thread."""
        with self._lock:
            self._set = True
            for stop in self._open:
                stop.set()

    def is_set(self) -> bool:
        """Whether it was asked."""
        return self._set

    @contextlib.contextmanager
    def over(self, stop: Stop) -> Iterator[None]:
        """Have a stop set when this one is.

        Raises:
            ActorError: INTERRUPTED at the end, when it was: what was judged meanwhile counts for nothing.
        """
        with self._lock:
            self._open.add(stop)
            if self._set:
                stop.set()
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(stop)
        if self._set:
            raise ActorError(Code.INTERRUPTED, "was ended before it was judged; nothing landed")


@contextlib.contextmanager
def isolated(app: App, candidates: Sequence[Candidate], halt: Halt | None = None) -> Iterator[Run]:
    """A `Run` that shows commands these candidates and their companions at their live paths.

    Leaving it ends what still runs.

    Args:
        app: whose root, network and language say what a command may see.
        candidates: all bodies that are judged together; what they name as `beside` counts too.
        halt: ends it from elsewhere.

    Raises:
        ActorError: UNFIT when placement is needed and the app's state cannot be written; INTERRUPTED when
            it was ended from elsewhere.
    """
    files = {path: content for candidate in candidates for path, content in candidate.beside.items()}
    files |= {candidate.place.path: candidate.content for candidate in candidates}
    refusal, stop = isolation_refusal(), Stop()
    try:
        tests = {one.place.path if one.place.is_test else one.place.own_test for one in candidates} - {""}
        with halt.over(stop) if halt else contextlib.nullcontext():
            yield _placement(app, files, refusal, stop, tests) if refusal else bubblewrap.Sandbox(app, files, stop)
    finally:
        stop.set()


def _placement(app: App, files: dict[str, bytes], refusal: str, stop: Stop, tests: set[str]) -> Placement:
    unheld = holding_refusal()
    note = f"not isolated ({refusal}): the body stood at its live path while it was judged"
    note += f", and nothing held what ran ({unheld})" if unheld else "; Landlock held what ran"
    return Placement(app, files, note, stop, tests, holds=not unheld)


@cache
def isolation_refusal() -> str:
    """Why this host gives no isolation; empty when it does. Tried once in a process, for real."""
    return bubblewrap.self_check()


def held_refusal() -> str:
    """Why this host holds nothing of what is judged, neither in a view of its own nor in place; empty when it does."""
    refusal = isolation_refusal()
    unheld = holding_refusal() if refusal else ""
    return f"{refusal}; {unheld}" if unheld else ""
