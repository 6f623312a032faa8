"""Whether a sandbox holds here and now: tries from inside, and a look from outside at what got through."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.doors import Doors
from foundry_implementation_actor.sandbox.inside.run import FIRST, TRIES
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.sandbox.stage import PACKAGE, Stage, staged
from foundry_implementation_actor.system.process import run_contained

_CHECK_S = 30.0
# The package itself is a name for its folder only: what its own first lines import takes longer than the tries.
_RUN = """
import sys
sys.dont_write_bytecode = True
package = type(sys)({package!r})
package.__path__ = [{folder!r}]
sys.modules[{package!r}] = package
from {package}.sandbox.inside import {module}
from {package}.sandbox.inside.trying import Scene, make
make(Scene(**{scene!r}), {names!r})
"""


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
        outcomes = _checked(sandbox, FIRST, None)
    except ActorError as error:
        return error.message
    except OSError as error:
        return f"it cannot be tried out here: {error.strerror or error}"
    faults = [outcome.what for outcome in outcomes if outcome.is_fault]
    return f"it does not hold: {'; '.join(faults)}" if faults else ""


def _checked(sandbox: Sandbox, names: Iterable[str], doors: Doors | None) -> tuple[Outcome, ...]:
    names = tuple(names)
    with staged(doors, names) as stage:
        command = Command(
            (sys.executable, "-I", "-S", "-c", program(stage, names)),
            stage.base / "own", {"PATH": os.defpath, "HOME": str(stage.base / "home")}, _CHECK_S,
        )  # fmt: skip
        with sandbox.confine(command, stage.view(doors)) as confined:
            completed = run_contained(confined)
        said, marked = _said(completed), stage.got_through()
    if not said:
        raise ActorError(Code.UNFIT, f"nothing can be run in it: {_last_line(completed)}")
    known = {gap.name for gap in sandbox.gaps}
    return tuple(_outcome(name, said.get(name), stage, name in marked, known) for name in names)


def program(stage: Stage, names: tuple[str, ...]) -> str:
    """The Python that makes the tries; only the first ones when there are no others among them."""
    module = "first" if set(names) <= set(FIRST) else "run"
    package = __name__.partition(".")[0]
    return _RUN.format(package=package, folder=str(PACKAGE), module=module, scene=vars(stage.scene), names=names)


def _outcome(name: str, said: tuple[str, str] | None, stage: Stage, marked: bool, known: set[str]) -> Outcome:
    """What came of a try: what is seen from outside counts before what it said itself."""
    one = TRIES[name]
    gap = one.gap if one.gap in known else ""
    if said is None:
        return Outcome(name, one.what, Result.THROUGH, why="the tries came to their end before it")
    word, text = said
    told_token = stage.token in text
    if marked or told_token or (word == "done" and not one.by_mark):
        return Outcome(name, one.what, Result.THROUGH, gap, text if word == "done" and not told_token else "")
    return Outcome(name, one.what, Result.UNTRIED if word == "untried" else Result.HELD, why=text)


def _said(completed: Completed) -> dict[str, tuple[str, str]]:
    """What the tries said of themselves, a word and a text by name; a line that is none of theirs is not said."""
    found = {}
    for line in completed.text.splitlines():
        with contextlib.suppress(ValueError):
            name, word, text = line.split(" ")
            found[name] = word, bytes.fromhex(text).decode(errors="replace")
    return found


def _last_line(completed: Completed) -> str:
    lines = completed.errors.splitlines()
    return lines[-1] if lines else f"it ended with {completed.code}"
