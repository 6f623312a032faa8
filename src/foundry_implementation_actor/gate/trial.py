"""Putting candidates before the judges, all in one isolation, the cheap judges first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import partial
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

_AT_ONCE = 4
_SIGNALS_WAIT_S = 0.25

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
    """Every candidate with its verdicts, in the judges' order; the first refusal ends the trial.

    The judges that must judge come first and are quick. The others look at the same time, since none needs
    another's word; what comes after the first refusal is ended and left out.

    Args:
        apps: the app as each candidate's plugin sees it.
        candidates: the bodies, judged together.
        judges: who judges them.
        isolated: where they are judged.
        notice: told of each judge, from the caller's thread.
    """
    trial = [Judged(candidate) for candidate in candidates]
    # The isolation is left first, which ends what still runs; then there is nothing to wait for.
    with ThreadPoolExecutor(_AT_ONCE) as threads, isolated(apps[0], candidates) as run:

        def look(judge: BodyJudge, at: int) -> Timed:
            started = time.monotonic()
            verdict = judge.judge(apps[at], candidates[at], run)
            return Timed(verdict, time.monotonic() - started)

        def ask(judge: BodyJudge, at: int) -> Callable[[], Timed]:
            return (
                partial(look, judge, at)
                if judge.name in MUST_JUDGE
                else partial(_awaited, threads.submit(look, judge, at))
            )

        for together in _in_order(judges):
            for judge, at, told in [(judge, at, ask(judge, at)) for judge, at in product(together, range(len(trial)))]:
                notice(f"{judge.name}: {candidates[at].place.target}")
                timed = told()
                trial[at] = Judged(candidates[at], (*trial[at].verdicts, timed))
                if timed.verdict.outcome is Outcome.REFUSED or is_blind(timed.verdict):
                    threads.shutdown(wait=False, cancel_futures=True)
                    return Trial(tuple(trial), run.note)
        return Trial(tuple(trial), run.note)


def _awaited(future: Future[Timed]) -> Timed:
    # Python notices a signal that comes just before a wait at the end of the wait only: none is without end.
    while not future.done():
        wait((future,), _SIGNALS_WAIT_S)
    return future.result()


def _in_order(judges: Sequence[BodyJudge]) -> tuple[list[BodyJudge], list[BodyJudge]]:
    """Those without whom nothing lands, and the others."""
    return [one for one in judges if one.name in MUST_JUDGE], [one for one in judges if one.name not in MUST_JUDGE]
