"""The landing gate: what is asked of a class is judged in isolation, and lands whole or leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place, Target, digest
from foundry_implementation_actor.gate import landing, ledger, placement, scaffold
from foundry_implementation_actor.gate.answer import answer
from foundry_implementation_actor.gate.ask import Ask, Assembly, Edits, Stage, Wish
from foundry_implementation_actor.gate.attempt import Ground, attempt, quiet
from foundry_implementation_actor.gate.finish import Finishes, Given
from foundry_implementation_actor.gate.house import House, Missing
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.gate.outcome import Again, Landed, Refused, Tested, Text, Trial
from foundry_implementation_actor.gate.plan import Unmade
from foundry_implementation_actor.gate.record import record
from foundry_implementation_actor.gate.scaffold import Barred, Made, make
from foundry_implementation_actor.gate.shadow import shadowed
from foundry_implementation_actor.gate.spot import read_live
from foundry_implementation_actor.gate.staging import Declared, Staged, Staging
from foundry_implementation_actor.gate.trial import Isolated, Notice, try_bodies
from foundry_implementation_actor.judges.bodies import body_judges, language_of
from foundry_implementation_actor.judges.port import BodyJudge
from foundry_implementation_actor.system.secrets import Redact, redactor


class Witness(Protocol):
    """Told what a gate does to its app, after it is done and before the caller is told. In any thread."""

    def attempted(self, record: Mapping[str, Any], outcome: Landed | Refused) -> None:
        """An attempt to land something: its line of the ledger, and what came of it."""

    def made(self, made: Made) -> None:
        """New files."""


class Nobody:
    """A witness that keeps nothing."""

    def attempted(self, record: Mapping[str, Any], outcome: Landed | Refused) -> None:
        """Nothing."""

    def made(self, made: Made) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Gate:
    """The gate of one app.

    Args:
        house: where the app's classes live.
        tools: changes how the app's tools are called.
        judges: who judges a body, when not the judges of the app's language.
        isolated: how a candidate is put in its place without touching the live file.
        notice: told what the gate is doing, a short line at a time; may be called in any thread.
        redact: takes secrets out of what the ledger keeps.
        given_up: whether the caller took the call back; asked before a body lands, in any thread.
        step: see `landing.Step`.
        witness: see `Witness`.
        barred: see `scaffold.Barred`.
    """

    house: House
    tools: Callable[[App], App] = lambda app: app
    judges: Sequence[BodyJudge] | None = None
    isolated: Isolated = isolated
    notice: Notice = lambda _: None
    redact: Redact = field(default=redactor(()))
    given_up: Callable[[], bool] = lambda: False
    step: landing.Step = lambda _: None
    witness: Witness = field(default=Nobody())
    barred: Barred = lambda _: ""

    @property
    def root(self) -> Path:
        """The real path of the app."""
        return self.house.app.root

    def telling(self, notice: Notice, given_up: Callable[[], bool] = lambda: False) -> Gate:
        """The same gate, telling somebody else what it does, for a caller who may take the call back."""
        return replace(self, notice=notice, given_up=given_up)

    def implement(self, wish: Wish) -> Landed | Refused | Staged | Again:
        """Land a body or a batch, or stage a section, or finish what was staged.

        Raises:
            ActorError: UNFIT when the app or the gate's state cannot be written.
        """
        match wish:
            case Stage():
                return self._stage(wish)
            case Ask(body=Assembly() as declared):
                return self._finish(wish, declared)
            case Ask(body=Edits()):
                return self._attempt("edit", (wish,))
            case Ask():
                return self._attempt("implement", (wish,))
            case _:
                return self._attempt("batch", wish)

    def read(self, target: Target) -> Text | Refused:
        """The current text of a class, or why there is none."""
        with quiet(self.root):
            place = self._find(target, "read")
            if isinstance(place, str):
                return Refused(place)
            content = read_live(self.root, place.path)
        return Text(place, content) if content is not None else Refused(f"{place.path} cannot be read")

    def test(self, target: Target) -> Tested | Refused:
        """Run a class's own test (or a test itself) on the text that stands."""
        place = self._find(target, "test")
        if isinstance(place, str):
            return Refused(place)
        path = place.path if place.is_test else place.own_test
        if not path:
            return Refused(f"{target} has no own test; make one first (make test {target.plugin} {target.class_})")
        app = self.tools(self.house.app_for(target.plugin))
        self.notice(f"own-test: {target}")
        with self.isolated(app, ()) as run:
            return Tested(target, path, language_of(app.language).own_test(app, path, run, original=True))

    def make(self, kind: str, plugin: str, name: str = "", *, dry_run: bool = False) -> Made | Unmade:
        """Create a plugin, a class or a test; see `scaffold.make`.

        Raises:
            ActorError: BAD_REQUEST when no app could be given that, UNFIT when a file cannot be written.
        """
        made = make(self.house, kind, plugin, name, dry_run=dry_run, barred=self.barred)
        if isinstance(made, Made) and made.written:
            self.witness.made(made)
        return made

    def status(self) -> list[Staged]:
        """Every body that is staged and not finished."""
        return Staging(self.root).all()

    def abandon(self, target: Target) -> bool:
        """Drop what is staged for a class; says whether there was anything."""
        return Staging(self.root).abandon(target)

    def recover(self) -> list[str]:
        """Undo what a killed process left half done; a line for each thing that was undone."""
        done = [*placement.recover(self.root), *landing.recover(self.root), *scaffold.recover(self.root)]
        return [*done, *Staging(self.root).recover(), *Finishes(self.root).recover()]

    def _find(self, target: Target, act: str) -> Place | str:
        found = self.house.find(target, act)
        return found.message if isinstance(found, Missing) else found

    def _find_to_land(self, target: Target, act: str) -> Place | str:
        found = self._find(target, act)
        if isinstance(found, str):
            return found
        shadow = shadowed(self.house.settings, found.path, found.module, is_test=found.is_test)
        return shadow or self.barred(found.path) or found

    def _judge(self, candidates: Sequence[Candidate]) -> Trial:
        judges = self.judges if self.judges is not None else body_judges(self.house.app.language)
        apps = [self.tools(self.house.app_for(candidate.place.target.plugin)) for candidate in candidates]
        return try_bodies(apps, candidates, judges, self.isolated, self.notice)

    def _attempt(self, act: str, asks: Sequence[Ask]) -> Landed | Refused:
        # A finish goes on, since its answer is kept for the caller who asks again.
        given_up = (lambda: False) if act == "finish" else self.given_up
        outcome = attempt(Ground(self.root, self._find_to_land, self._judge, self.step, given_up), asks)
        told = record(act, asks, outcome, self.redact)
        self.witness.attempted(told, outcome)
        missed = ledger.append(self.root, told)
        if missed and isinstance(outcome, Landed):
            return replace(outcome, notes=(*outcome.notes, missed))
        return outcome

    def _stage(self, wish: Stage) -> Staged | Refused:
        place = self._find_to_land(wish.target, "implement")
        if isinstance(place, str):
            return Refused(place)
        staging, section = Staging(self.root), wish.section
        if section.first:
            return staging.start(wish.target, section.content)
        taken = staging.append(wish.target, section.content, Declared(section.section, section.offset))
        return Refused(taken) if isinstance(taken, str) else taken

    def _finish(self, ask: Ask, declared: Assembly) -> Landed | Refused | Again:
        finishes, wanted = Finishes(self.root), self._staged_digest(ask.target, declared)
        with finishes.turn(ask.target, lambda: self.notice("another finish of this class is running")) as given:
            if given is not None and given.digest == wanted:
                return Again(given.answer)
            if self._staged_digest(ask.target, declared) == "":
                earlier = finishes.last(ask.target)
                if earlier is not None and self._still_stands(ask.target, earlier, declared):
                    return Again(earlier.answer)
            outcome = _told_to_stay(self._attempt("finish", (ask,)))
            if outcome.bodies:
                judged = digest(outcome.bodies[0].candidate.content)
                finishes.give(ask.target, judged, answer(outcome), landed=isinstance(outcome, Landed))
            return outcome

    def _staged_digest(self, target: Target, declared: Assembly) -> str:
        """The digest of the body that a finish would judge; empty when nothing is staged."""
        kept = Staging(self.root).assembled(target)
        return "" if kept is None else digest(kept + declared.last)

    def _still_stands(self, target: Target, given: Given, declared: Assembly) -> bool:
        """Whether an earlier finish landed, its body is still the file's, and the caller means that body."""
        text = self.read(target)
        if not given.landed or isinstance(text, Refused) or text.digest != given.digest:
            return False
        return declared.sha256 in {"", given.digest} and declared.size in {None, len(text.content)}


def _told_to_stay(outcome: Landed | Refused) -> Landed | Refused:
    """A refused finish leaves its sections where they are: say what can be done with them."""
    if isinstance(outcome, Landed) or not outcome.bodies:
        return outcome
    return replace(outcome, because=f"{outcome.because}\nits sections stay staged: append goes on, start begins anew")
