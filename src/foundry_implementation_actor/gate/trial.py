"""Putting candidates before the judges, all in one isolation, the cheap judges first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import product

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate.outcome import Judged, Timed, Trial
from foundry_implementation_actor.judges.port import BodyJudge

Notice = Callable[[str], None]
"""Told what the gate is doing, one short line at a time."""

Isolated = Callable[[App, Sequence[Candidate]], AbstractContextManager[Run]]
"""Opens an isolation in which the candidates stand at their live paths."""


MUST_JUDGE = frozenset({"syntax", "strict-types", "shape"})
"""Judges without whose word nothing lands: a host on which they cannot judge is not fit."""


def is_blind(verdict: Verdict) -> bool:
    """Whether a judge that must judge could not."""
    return verdict.outcome is Outcome.UNJUDGED and verdict.judge in MUST_JUDGE


def try_bodies(
    apps: Sequence[App],
    candidates: Sequence[Candidate],
    judges: Sequence[BodyJudge],
    isolated: Isolated,
    notice: Notice,
) -> Trial:
    """Every candidate with its verdicts; the first refusal ends the trial, what comes after it is not asked.

    `apps` are the app as each candidate's plugin sees it.
    """
    trial = [Judged(candidate) for candidate in candidates]
    with isolated(apps[0], candidates) as run:
        for judge, at in product(judges, range(len(trial))):
            candidate = trial[at].candidate
            notice(f"{judge.name}: {candidate.place.target}")
            started = time.monotonic()
            verdict = judge.judge(apps[at], candidate, run)
            timed = Timed(verdict, time.monotonic() - started)
            trial[at] = Judged(candidate, (*trial[at].verdicts, timed))
            if verdict.outcome is Outcome.REFUSED or is_blind(verdict):
                break
        return Trial(tuple(trial), run.note)
