"""One attempt: prepare the candidates, judge them, and land them if no judge refuses and nothing moved."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.edit import Unapplied, edited
from foundry_implementation_actor.domain.unit import Candidate, Place, Target, digest
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate.answer import diagnostic
from foundry_implementation_actor.gate.ask import Ask, Assembly, Edits, Whole
from foundry_implementation_actor.gate.landing import Step, alone, count, land
from foundry_implementation_actor.gate.outcome import Judged, Landed, Refused, Trial
from foundry_implementation_actor.gate.placement import undisturbed
from foundry_implementation_actor.gate.spot import read_live
from foundry_implementation_actor.gate.staging import Staging, too_large
from foundry_implementation_actor.gate.state import kept_folder
from foundry_implementation_actor.gate.trial import is_blind

FREE_TRIALS = 3
"""Trials that hold nobody up; a body beside which others still land then is judged with the app held."""

_GIVEN_UP = Refused("the caller took the call back before the body landed; nothing was changed")
_MOVED = "{path}: was changed by somebody else while its body was judged; read it again and ask anew"


class Judging(Protocol):
    """Puts candidates before the judges."""

    def __call__(self, candidates: Sequence[Candidate]) -> Trial: ...


@dataclass(frozen=True)
class Ground:
    """Where an attempt takes place.

    `find` gives a class's place, or why it has none for what is to be done with it. `given_up` says
    that the caller took the call back, so that nothing should land any more.
    """

    root: Path
    find: Callable[[Target, str], Place | str]
    judge: Judging
    step: Step = lambda _: None
    given_up: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class _Sight:
    """The candidates, and how many landings the app had had when they were prepared."""

    count: int
    candidates: tuple[Candidate, ...]


def attempt(ground: Ground, asks: Sequence[Ask]) -> Landed | Refused:
    """Land all of the bodies, or none.

    They are judged without a lock. If another landing came in between, they are judged again, because
    what was green beside the old bodies may not be beside the new; but never over a file that changed
    itself, since what was written there would be lost. The last trial of a busy app is held alone.

    Raises:
        ActorError: UNFIT when the app or the gate's state cannot be written.
    """
    trial, free = None, FREE_TRIALS
    while True:
        with alone(ground.root):
            sight = _look(ground, asks, trial)
            if isinstance(sight, Refused):
                return sight
            if not free:
                return _land(ground, asks, ground.judge(sight.candidates))
        trial, free = ground.judge(sight.candidates), free - 1
        with alone(ground.root):
            if count(ground.root) == sight.count:
                return _land(ground, asks, trial)


def _look(ground: Ground, asks: Sequence[Ask], trial: Trial | None) -> _Sight | Refused:
    """The candidates as the app is now, under `alone`; none when a file of an earlier trial moved on."""
    if ground.given_up():
        return _GIVEN_UP
    with quiet(ground.root):
        judged = trial.bodies if trial else ()
        for body in judged:
            if not _stands(ground.root, body.candidate):
                return Refused(_MOVED.format(path=body.candidate.place.path), judged)
        candidates = _prepared(ground, asks)
    return candidates if isinstance(candidates, Refused) else _Sight(count(ground.root), candidates)


def _stands(root: Path, judged: Candidate) -> bool:
    """Whether a file holds what a body was judged against, or that body already."""
    return read_live(root, judged.place.path) in {judged.original, judged.content}


def _land(ground: Ground, asks: Sequence[Ask], trial: Trial) -> Landed | Refused:
    refused = _refusal(trial)
    if refused is not None:
        return refused
    if ground.given_up():
        return replace(_GIVEN_UP, bodies=trial.bodies)
    candidates = [body.candidate for body in trial.bodies]
    with quiet(ground.root):
        missed = land(ground.root, candidates, ground.step)
    if missed is not None:
        return Refused(f"{missed.path}: {missed.message}; read it again and ask anew", trial.bodies)
    _forget_staged(ground.root, asks, candidates)
    return Landed(trial.bodies, (trial.note,) if trial.note else ())


def quiet(root: Path) -> AbstractContextManager[None]:
    """A time in which no candidate stands at a live path, on a host where that is how they are judged."""
    return undisturbed(root) if kept_folder(root, "journal") else contextlib.nullcontext()


def _prepared(ground: Ground, asks: Sequence[Ask]) -> tuple[Candidate, ...] | Refused:
    candidates = []
    for ask in asks:
        candidate = _candidate(ground, ask)
        if isinstance(candidate, str):
            return Refused(candidate if len(asks) == 1 else f"{ask.target}: {candidate}")
        candidates.append(candidate)
    bodies = {candidate.place.path: candidate.content for candidate in candidates}
    if len(bodies) < len(candidates):
        return Refused("two of these classes live in one file; land them one after the other, or in one body")
    return tuple(replace(one, beside=_others(bodies, one)) for one in candidates)


def _others(bodies: dict[str, bytes], candidate: Candidate) -> dict[str, bytes]:
    return {path: content for path, content in bodies.items() if path != candidate.place.path}


def _candidate(ground: Ground, ask: Ask) -> Candidate | str:
    place = ground.find(ask.target, "edit" if isinstance(ask.body, Edits) else "implement")
    if isinstance(place, str):
        return place
    original = read_live(ground.root, place.path)
    if original is None:
        return f"{place.path} cannot be read as a regular file"
    content = _content(ground.root, ask, original)
    if isinstance(content, str):
        return content
    if ask.expect and ask.expect != digest(original):
        return _stale(place, original, content, ask.expect)
    return Candidate(place, content, original)


def _stale(place: Place, original: bytes, content: bytes, expected: str) -> str:
    if original == content:
        return f"{place.path} holds exactly this body already, so it is not the text with digest {expected}"
    now = digest(original)
    return f"{place.path} is not the text that was expected: its digest is {now}, not {expected}; read it again"


def _content(root: Path, ask: Ask, original: bytes) -> bytes | str:
    match ask.body:
        case Whole(content):
            return content
        case Edits(pairs):
            found = edited(original, pairs)
            if isinstance(found, Unapplied):
                return str(found)
            return (too_large(len(found)) if len(found) > len(original) else "") or found
        case Assembly() as declared:
            return _assembled(root, ask.target, declared)


def _assembled(root: Path, target: Target, declared: Assembly) -> bytes | str:
    staging = Staging(root)
    kept, status = staging.assembled(target), staging.status(target)
    if kept is None or status is None:
        return f"nothing was started for {target}; send its first section with mode=start"
    whole = kept + declared.last
    refused = too_large(len(whole))
    if refused:
        return refused
    sections = status.sections + (1 if declared.last else 0)
    wrong = [
        f"{wanted} {what} were declared, {here} are here"
        for what, wanted, here in (("bytes", declared.size, len(whole)), ("sections", declared.sections, sections))
        if wanted is not None and wanted != here
    ]
    wrong += [
        f"{what} {wanted} came with the call, but the next is {here}"
        for what, wanted, here in (("section", declared.section, sections), ("offset", declared.offset, len(kept)))
        if wanted is not None and wanted != here
    ]
    if declared.sha256 and declared.sha256 != digest(whole):
        wrong.append(f"the SHA-256 of what is here is {digest(whole)}, not {declared.sha256}")
    return f"what was staged is not what was declared: {'; '.join(wrong)}; it stays staged" if wrong else whole


def _refusal(trial: Trial) -> Refused | None:
    several = len(trial.bodies) > 1
    for body in trial.bodies:
        named = f"{body.candidate.place.target}: " if several else ""
        said = diagnostic(body)
        if said:
            return Refused(named + said, trial.bodies)
        unfit = _unjudged(body)
        if unfit:
            return Refused(f"{named}{unfit}", trial.bodies, unfit=True)
    return None


def _unjudged(body: Judged) -> str:
    left = filter(is_blind, body.of(Outcome.UNJUDGED))
    return "; ".join(f"{verdict.judge} could not be judged: {verdict.cause}" for verdict in left)


def _forget_staged(root: Path, asks: Sequence[Ask], landed: Sequence[Candidate]) -> None:
    staging = Staging(root)
    for ask, candidate in zip(asks, landed, strict=True):
        if isinstance(ask.body, Assembly):
            staging.taken(ask.target, candidate.content.removesuffix(ask.body.last))
