"""The sessions of one run: the first carries the task out, each further one is given what a red `verify` printed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.run import Cause, Refused, SessionEnd
from foundry_implementation_actor.runs.judge import Judged, judge, judge_pen
from foundry_implementation_actor.runs.start import Run, check_dockerfiles
from foundry_implementation_actor.runs.verify import Red, verify
from foundry_implementation_actor.runs.workshop import Asked, SessionStoppedError, Workshop, run_session
from foundry_implementation_actor.session.budget import remaining, used_up
from foundry_implementation_actor.session.prompt import Mending, implement_prompt
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.capture import packed_tree, staged_tree
from foundry_implementation_actor.workspace.checkout import Checkout, renew, run_folder
from foundry_implementation_actor.workspace.trusted import Prepared


class Work(NamedTuple):
    """A run whose tree is ready for a session: what the tree was before, and the system prompt that the cards make."""

    run: Run
    checkout: Checkout
    prepared: Prepared
    system: str


class Proved(NamedTuple):
    """A change that nothing was found against.

    `pack` holds what its tree adds to the base: it waits in memory, and names itself by its content, while code of
    the repository runs. `verified` are the components whose `verify` was green.
    """

    tree: str
    pack: bytes
    verified: tuple[Component, ...]


@dataclass(frozen=True)
class Past:
    """What the sessions of a run have come to so far.

    `end` is all of their ends as one, `remediated` counts the sessions that a component's red `verify` asked for, by
    its name; `red` is what the next session is to mend.
    """

    end: SessionEnd = field(default=SessionEnd(Cause.FINISHED))
    remediated: Mapping[str, int] = field(default_factory=dict)
    red: Red | None = None

    @property
    def remediations(self) -> int:
        """How many sessions there were after the first."""
        return sum(self.remediated.values())

    def tried(self, component: Component) -> int:
        """How many of them were asked for by this component."""
        return self.remediated.get(component.name, 0)

    def with_red(self, red: Red) -> Past:
        """The same, with one more session to come, which is given this."""
        remediated = {**self.remediated, red.component.name: self.tried(red.component) + 1}
        return Past(self.end, remediated, red)


def until_green(work: Work) -> tuple[Proved, Past] | Refused:
    """Start sessions on the same tree until what they leave is green, or no further one may be started.

    Each component's `remediate` says how many further sessions it may ask for; all of them together have the
    budget of one.

    Raises:
        ActorError: a session or the actor was stopped, or the host is not fit.
    """
    shop, past = work.run.shop, Past()
    while True:
        past = replace(past, end=_session(work, past).after(past.end))
        outcome = _proved(work, past)
        if not isinstance(outcome, Refused):
            return outcome, past
        if not isinstance(outcome, Red) or past.tried(outcome.component) >= outcome.component.remediate:
            return _told(outcome, past)
        gone = used_up(shop.budgets[work.run.task.door], past.end)
        if gone:
            why = f"no further session was started, because nothing is left of the run's budget of {gone}"
            return _told(replace(outcome, because=f"{outcome.because}; {why}"), past)
        past = past.with_red(outcome)
        _tell(shop, outcome, past)


def fresh_folder(run: Run) -> AbstractContextManager[Path]:
    """A directory for this run that did not exist before; removed at the end."""
    return run_folder(run.shop.state, run.shop.capability.clone_prefix(run.task.task_id), run.shop.journal)


def _tell(shop: Workshop, red: Red, past: Past) -> None:
    component, attempt = red.component, past.tried(red.component)
    shop.journal.event("remediate", component=component.name, ended=red.ended, attempt=attempt, of=component.remediate)


def _told(refused: Refused, past: Past) -> Refused:
    """The same refusal, saying also how many remediations were tried."""
    if not past.remediations:
        return refused
    tried = "1 remediation" if past.remediations == 1 else f"{past.remediations} remediations"
    return replace(refused, because=f"after {tried}, {refused.because}")


def _session(work: Work, past: Past) -> SessionEnd:
    run, shop, task, red = work.run, work.run.shop, work.run.task, past.red
    command = shop.journal.redact(shlex.join(red.component.verify)) if red else ""
    mending = Mending(command, red.ended, red.output) if red else None
    gate = shop.gate_root if run.pen else None
    prompt = implement_prompt(task, shop.capability, continues=run.plan.continues, gate=gate, mending=mending)
    asked = Asked(work.system, prompt, remaining(shop.budgets[task.door], past.end), past.remediations + 1)
    with shop.journal.step("session", branch=task.branch, engine=shop.engine.name):
        if red is None:
            return run_session(shop, task, work.checkout, asked, run.pen)
        renew(work.checkout, run.mirror, run.plan.start, shop.capability)
        try:
            return run_session(shop, task, work.checkout, asked, run.pen)
        except SessionStoppedError as stopped:
            which = f"{past.tried(red.component)} of {red.component.remediate} of {red.component.name}"
            said = f"{stopped.message}; it was remediation {which}, with what the run had left of its budget"
            raise SessionStoppedError(stopped.code, said, stopped.end, hint=stopped.hint) from stopped


def _proved(work: Work, past: Past) -> Proved | Refused:
    """Judge what a session left, and run `verify` on it. Each time anew, and all of it."""
    shop = work.run.shop
    # Whatever lay on disk while a session ran may be its own work: from here on, another directory.
    with fresh_folder(work.run) as folder:
        run = replace(work.run, folder=folder)
        with shop.journal.step("judge"):
            judged = _judged(run, work.prepared)
        if isinstance(judged, Refused):
            return judged
        touched = shop.capability.components_for(change.path for change in judged.changes)
        shop.journal.event("components-touched", components=touched)
        git, tree = judged.trusted.git, staged_tree(judged.trusted)
        pack = packed_tree(judged.trusted, tree)
        verified = (
            _taken_away(run, git, tree, past)
            or check_dockerfiles(shop, git, tree, touched)
            or verify(run, git, tree, touched)
        )
        return verified if isinstance(verified, Refused) else Proved(tree, pack, verified)


def _taken_away(run: Run, git: Git, tree: str, past: Past) -> Refused | None:
    """A component that was red in this run has to become green, and not to be gone."""
    components = [one for one in run.shop.capability.components if past.tried(one)]
    gone = [one.name for one in components if not git.attempt("cat-file", "-e", f"{tree}:{one.path.rstrip('/')}").ok]
    if not gone:
        return None
    return Refused(f"the verify of {', '.join(gone)} was red, and a further session took the component away")


def _judged(run: Run, prepared: Prepared) -> Judged | Refused:
    judged = judge(run.shop, prepared, run.folder)
    if run.pen is None:
        return judged
    record = run.pen.record()
    if isinstance(judged, Refused):
        return replace(judged, because=f"{judged.because} (through the gate: {record.said})")
    return judge_pen(run.shop, judged, record)
