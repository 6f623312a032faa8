"""Whether a sandbox holds here and now: tries from inside, and a look from outside at what got through."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.doors import Doors
from foundry_implementation_actor.sandbox.inside.run import TRIES
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.sandbox.stage import PACKAGES, Stage, staged
from foundry_implementation_actor.system.process import run_contained

_CHECK_S = 30.0
_RUN = (
    "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; "
    "from foundry_implementation_actor.sandbox.inside import run; run.main(*sys.argv[2:])"
)


class Result(StrEnum):
    """What came of one try."""

    HELD = "held"
    THROUGH = "got through"
    UNTRIED = "could not be tried"


@dataclass(frozen=True)
class Outcome:
    """What came of one try: its name, what it does, and why it was refused or could not be made.

    `gap` is the name of the gap of this sandbox that lets it through; empty when it should hold.
    """

    name: str
    what: str
    result: Result
    gap: str = ""
    why: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it got through although the sandbox claims to hold it."""
        return self.result is Result.THROUGH and not self.gap


def full_check(sandbox: Sandbox) -> tuple[Outcome, ...]:
    """Every try there is, under a view with a way out. It takes about a second.

    Raises:
        ActorError: UNFIT when nothing can be run in this sandbox here.
    """
    with sandbox.doors() as doors:
        return _checked(sandbox, TRIES, doors)


def refusal(sandbox: Sandbox) -> str:
    """Why this sandbox does not hold here: one line, empty when the tries that matter most all failed."""
    try:
        outcomes = _checked(sandbox, [one.name for one in TRIES.values() if one.quick], None)
    except ActorError as error:
        return error.message
    except OSError as error:
        return f"it cannot be tried out here: {error.strerror or error}"
    faults = [outcome.what for outcome in outcomes if outcome.is_fault]
    return f"it does not hold: {'; '.join(faults)}" if faults else ""


def _checked(sandbox: Sandbox, names: Iterable[str], doors: Doors | None) -> tuple[Outcome, ...]:
    names = tuple(names)
    with staged(doors) as stage:
        command = Command(
            (sys.executable, "-I", "-S", "-c", _RUN, str(PACKAGES), json.dumps(stage.scene._asdict()), ",".join(names)),
            stage.base / "own", {"PATH": os.defpath, "HOME": str(stage.base / "home")}, _CHECK_S,
        )  # fmt: skip
        with sandbox.confine(command, stage.view(doors)) as confined:
            completed = run_contained(confined)
        said, marked = _said(completed), stage.got_through()
    if not said:
        raise ActorError(Code.UNFIT, f"nothing can be run in it: {_last_line(completed)}")
    known = {gap.name for gap in sandbox.gaps}
    return tuple(_outcome(name, said.get(name), stage, name in marked, known) for name in names)


def _outcome(name: str, said: dict[str, Any] | None, stage: Stage, marked: bool, known: set[str]) -> Outcome:
    """What came of a try: what is seen from outside counts before what it said itself."""
    one = TRIES[name]
    gap = one.gap if one.gap in known else ""
    if said is None:
        return Outcome(name, one.what, Result.THROUGH, why="the tries came to their end before it")
    told_token = stage.token in str(said.get("read", ""))
    if marked or told_token or (said["said"] == "done" and not one.by_mark):
        return Outcome(name, one.what, Result.THROUGH, gap, "" if told_token else str(said.get("read", "")))
    result = Result.UNTRIED if said["said"] == "untried" else Result.HELD
    return Outcome(name, one.what, result, why=str(said.get("why", "")))


def _said(completed: Completed) -> dict[str, dict[str, Any]]:
    """What the tries said of themselves, by name; a line that is none of theirs counts as not said."""
    found = {}
    for line in completed.text.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            found[str(told["name"])] = told
    return found


def _last_line(completed: Completed) -> str:
    lines = completed.errors.splitlines()
    return lines[-1] if lines else f"it ended with {completed.code}"
