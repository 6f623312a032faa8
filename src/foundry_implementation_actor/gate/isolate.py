"""Where a candidate is judged: in a private view of the host, or, where that is refused, placed for a moment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.gate import bubblewrap
from foundry_implementation_actor.gate.placement import Placement
from foundry_implementation_actor.system.process import Stop


@contextlib.contextmanager
def isolated(app: App, candidates: Sequence[Candidate]) -> Iterator[Run]:
    """A `Run` that shows commands these candidates and their companions at their live paths.

    Leaving it ends what still runs.

    Args:
        app: whose root, network and language say what a command may see.
        candidates: all bodies that are judged together; what they name as `beside` counts too.

    Raises:
        ActorError: UNFIT when placement is needed and the app's state cannot be written.
    """
    files = {path: content for candidate in candidates for path, content in candidate.beside.items()}
    files |= {candidate.place.path: candidate.content for candidate in candidates}
    refusal, stop = isolation_refusal(), Stop()
    note = f"not isolated ({refusal}): the body stood at its live path while it was judged"
    try:
        tests = {one.place.path if one.place.is_test else one.place.own_test for one in candidates} - {""}
        yield Placement(app, files, note, stop, tests) if refusal else bubblewrap.Sandbox(app, files, stop)
    finally:
        stop.set()


@cache
def isolation_refusal() -> str:
    """Why this host gives no isolation; empty when it does. Tried once in a process, for real."""
    return bubblewrap.self_check()
