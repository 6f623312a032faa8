"""A place to run one session in, and what was recorded of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.run import Budget, Door, SessionEnd
from foundry_implementation_actor.engines.port import Engine, SessionOrder
from foundry_implementation_actor.engines.script import Script, ScriptedSession
from foundry_implementation_actor.engines.scripted import Scripted
from foundry_implementation_actor.session.drive import GRACE_S, drive
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.process import Stop
from foundry_implementation_actor.system.secrets import redactor

BUDGET = Budget(
    turns=60,
    turns_variable="MAX_TURNS",
    clock_s=60,
    clock_variable="SESSION_TIMEOUT_S",
    silence_s=60,
    silence_variable="SILENCE_TIMEOUT_S",
)


@dataclass
class Stage:
    """A tree, a home and a temporary directory below `base`; `records` fills as sessions run."""

    base: Path
    records: list[dict[str, Any]] = field(default_factory=list)
    on_record: Callable[[dict[str, Any]], None] = lambda _: None

    def __post_init__(self) -> None:
        for place in (self.tree, self.base / "home", self.base / "tmp"):
            place.mkdir(parents=True)

    @property
    def tree(self) -> Path:
        """Where sessions work."""
        return self.base / "tree"

    def order(self, door: Door = Door.IMPLEMENT, **changes: Any) -> SessionOrder:
        """An order for this place; `changes` are fields of `SessionOrder`."""
        order = SessionOrder(
            door=door,
            task_id="TASK-1",
            system="You are scripted.",
            prompt="Do the task.",
            tree=self.tree,
            home=self.base / "home",
            temporary=self.base / "tmp",
            turns=60,
            path=os.environ["PATH"],
        )
        return replace(order, **changes)

    def drive(
        self,
        engine: Engine,
        order: SessionOrder,
        budget: Budget = BUDGET,
        stop: Stop | None = None,
        grace_s: float = GRACE_S,
    ) -> SessionEnd:
        """Run one session; its records are kept."""
        secrets = [value for value in order.credentials.values() if "://" not in value]
        journal = Journal(sink=self._keep, redact=redactor(secrets))
        return drive(engine, order, budget, journal, stop, grace_s=grace_s)

    def play(self, *steps: dict[str, Any], **how: Any) -> SessionEnd:
        """Run one scripted session of these steps; `how` as in `drive`."""
        return self.drive(Scripted(Script((ScriptedSession(steps),))), self.order(), **how)

    def recorded(self, step: str) -> list[dict[str, Any]]:
        """The records of one kind."""
        return [record for record in self.records if record.get("step") == step]

    def _keep(self, line: str, _: Mapping[str, str]) -> None:
        record = json.loads(line)
        self.records.append(record)
        self.on_record(record)
