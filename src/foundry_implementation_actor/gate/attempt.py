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
from foundry_implementation_actor.gate.staging import Staging
from foundry_implementation_actor.gate.state import kept_folder
from foundry_implementation_actor.gate.trial import is_blind


class Judging(Protocol):
    """Puts candidates before the judges."""

    def __call__(self, candidates: Sequence[Candidate]) -> Trial: ...


@dataclass(frozen=True)
class Ground:
    """Where an attempt takes place.

    `find` gives a class's place, or why it has none for what is to be done with it.
    """

    root: Path
    find: Callable[[Target, str], Place | str]
    judge: Judging
    step: Step = lambda _: None


def attempt(ground: Ground, asks: Sequence[Ask]) -> Landed | Refused:
    """Land all of the bodies, or none.

    They are judged without a lock. If another landing came in between, they are judged once more
    while the app is held, because what was green beside the old bodies may not be beside the new.

    Raises:
        ActorError: UNFIT when the app or the gate's state cannot be written.
    """
    root = ground.root
    with alone(root), quiet(root):
        seen = count(root)
        candidates = _prepared(ground, asks)
    if isinstance(candidates, Refused):
        return candidates
    trial = ground.judge(candidates)
    with alone(root):
        if count(root) != seen:
            with quiet(root):
                candidates = _prepared(ground, asks)
            if isinstance(candidates, Refused):
                return candidates
            trial = ground.judge(candidates)
        refused = _refusal(trial)
        if refused is not None:
            return refused
        with quiet(root):
            missed = land(root, candidates, ground.step)
    if missed is not None:
        return Refused(f"{missed.path}: {missed.message}; read it again and ask anew", trial.bodies)
    _forget_staged(root, asks, candidates)
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
            return str(found) if isinstance(found, Unapplied) else found
        case Assembly() as declared:
            return _assembled(root, ask.target, declared)


def _assembled(root: Path, target: Target, declared: Assembly) -> bytes | str:
    staging = Staging(root)
    kept, status = staging.assembled(target), staging.status(target)
    if kept is None or status is None:
        return f"nothing was started for {target}; send its first section with mode=start"
    whole = kept + declared.last
    sections = status.sections + (1 if declared.last else 0)
    wrong = [
        f"{wanted} {what} were declared, {here} are here"
        for what, wanted, here in (("bytes", declared.size, len(whole)), ("sections", declared.sections, sections))
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
