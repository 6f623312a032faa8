"""An account in memory of what a gate wrote to its app: the one witness that no file of the app can talk to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from foundry_implementation_actor.domain.gated import GateBody, GateRecord
from foundry_implementation_actor.domain.unit import digest
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate.outcome import Judged, Landed, Refused
from foundry_implementation_actor.gate.scaffold import Made

Told = Callable[[str, Mapping[str, Any]], None]
"""Told of each thing the gate did: its name, and what is known of it."""


class Account:
    """A `gate.Witness` that remembers. May be told in several threads at once.

    Args:
        root: the app's directory in its repository, with `/` at its end; empty for the repository itself.
        told: told of each attempt (`gate-landed`, `gate-refused`: the line of the ledger) and of new files
            (`gate-made`).
    """

    def __init__(self, root: str, told: Told) -> None:
        self._root = root
        self._told = told
        self._lock = threading.Lock()
        self._bodies: dict[str, GateBody] = {}
        self._landed = 0
        self._refused = 0

    def attempted(self, record: Mapping[str, Any], outcome: Landed | Refused) -> None:
        """Remember an attempt; see `gate.Witness`."""
        with self._lock:
            if isinstance(outcome, Landed):
                self._landed += 1
                for body in outcome.bodies:
                    self._keep(self._body(body))
            else:
                self._refused += 1
        self._told("gate-landed" if isinstance(outcome, Landed) else "gate-refused", record)

    def made(self, made: Made) -> None:
        """Remember new files; see `gate.Witness`."""
        with self._lock:
            for path, content in made.files.items():
                self._keep(GateBody(self._root + path, self._root + path, digest(content), scaffold=bool(content)))
        self._told("gate-made", {"files": [self._root + path for path in made.files]})

    def record(self, staged: Iterable[str] = ()) -> GateRecord:
        """All that was done so far; `staged` are the classes that are begun and not finished."""
        with self._lock:
            return GateRecord(dict(self._bodies), self._landed, self._refused, tuple(staged))

    def _body(self, body: Judged) -> GateBody:
        candidate = body.candidate
        path = self._root + candidate.place.path
        earlier = self._bodies.get(path)
        before = earlier.before if earlier else digest(candidate.original)
        unjudged = tuple(verdict.judge for verdict in body.of(Outcome.UNJUDGED))
        return GateBody(path, str(candidate.place.target), digest(candidate.content), before, unjudged=unjudged)

    def _keep(self, body: GateBody) -> None:
        self._bodies[body.path] = body
