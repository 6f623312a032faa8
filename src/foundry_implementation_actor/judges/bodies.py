"""The judges of a class body, in the order of the contract (CONTRACT 8)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.judges.construction import judge_construction
from foundry_implementation_actor.judges.linkage import judge_linkage
from foundry_implementation_actor.judges.own_test import judge_own_test
from foundry_implementation_actor.judges.port import BodyJudge
from foundry_implementation_actor.judges.shape import judge_shape
from foundry_implementation_actor.judges.strict_types import judge_strict_types
from foundry_implementation_actor.judges.syntax import judge_syntax
from foundry_implementation_actor.languages.port import Language
from foundry_implementation_actor.system.files import ran_out
from foundry_implementation_actor.system.install import install

if TYPE_CHECKING:
    from foundry_implementation_actor.languages import php, python

    _modules: tuple[Language, ...] = (php, python)

_LANGUAGES = {name: f"foundry_implementation_actor.languages.{name}" for name in ("php", "python")}
_Judge = Callable[[Language, App, Candidate, Run], Verdict]
_JUDGES: dict[str, _Judge] = {
    "syntax": judge_syntax,
    "strict-types": judge_strict_types,
    "shape": judge_shape,
    "linkage": judge_linkage,
    "construction": judge_construction,
    "own-test": judge_own_test,
}
_ONLY_PHP = frozenset({"strict-types"})


def language_of(name: str) -> Language:
    """The module of a language, loaded when it is asked for: PHP's needs a grammar that a Python app can do without.

    Raises:
        ActorError: BAD_REQUEST for a language that the gate does not know, UNFIT when its module lacks another.
    """
    if name not in _LANGUAGES:
        raise ActorError(Code.BAD_REQUEST, f"no judges for {name!r}", hint=f"use one of {', '.join(_LANGUAGES)}")
    try:
        module: Any = importlib.import_module(_LANGUAGES[name])
    except ModuleNotFoundError as error:
        said = f"the judges for {name} need {error.name}, which the `gate` extra brings"
        raise ActorError(Code.UNFIT, said, hint=install("gate")) from error
    language: Language = module
    return language


def body_judges(language: str) -> tuple[BodyJudge, ...]:
    """The judges for bodies of a language, in order.

    Raises:
        ActorError: see `language_of`.
    """
    module = language_of(language)
    names = [name for name in _JUDGES if language == "php" or name not in _ONLY_PHP]
    return tuple(_BodyJudge(name, module, _JUDGES[name]) for name in names)


@dataclass(frozen=True)
class _BodyJudge:
    """One judge of one language; whatever breaks in it, the candidate is unjudged, not refused.

    A host that ran out of something is no cause of that kind: the next ask may well be judged.
    """

    name: str
    language: Language
    look: _Judge

    def judge(self, app: App, candidate: Candidate, run: Run) -> Verdict:
        noted = _Noted(run)
        try:
            verdict = self.look(self.language, app, candidate, noted)
        except Exception as error:
            if ran_out(error):
                hint = "nothing was changed; give this host room (open files, processes, memory, disk) and ask again"
                raise ActorError(Code.UNFIT, f"{self.name} could not judge: {error}", hint=hint) from error
            if isinstance(error, ActorError):
                return Verdict(self.name, Outcome.UNJUDGED, cause=str(error), evidence=noted.said)
            verdict = Verdict(self.name, Outcome.UNJUDGED, cause=f"the judge broke: {type(error).__name__}: {error}")
        evidence = "; ".join(filter(None, (verdict.evidence, noted.said)))
        return Verdict(self.name, verdict.outcome, verdict.findings, verdict.cause, evidence)


class _Noted:
    """A `Run` that remembers whether it was used, so that a verdict can say how it came about."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._used = False

    @property
    def note(self) -> str:
        return self._run.note

    @property
    def said(self) -> str:
        return self.note if self._used else ""

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        self._used = True
        return self._run(command, original=original)
