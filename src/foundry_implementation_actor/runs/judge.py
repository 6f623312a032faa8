"""From a tree that a session has left to a change that may be delivered, or a refusal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.domain.change import Change, printable
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.domain.run import Refused
from foundry_implementation_actor.domain.verdict import Finding, Verdict
from foundry_implementation_actor.judges.boundary import judge_boundary, judge_size
from foundry_implementation_actor.judges.gated import judge_gated
from foundry_implementation_actor.runs.workshop import Workshop
from foundry_implementation_actor.workspace.capture import Survey, digests, ignored, inspected, stage, survey, under
from foundry_implementation_actor.workspace.left import pipes
from foundry_implementation_actor.workspace.trusted import Prepared, Trusted, open_trusted

_SHOWN = 20
_GLANCE_S = 3.0


@dataclass(frozen=True)
class Judged:
    """A change that may be delivered, and the git directory that holds it."""

    trusted: Trusted
    changes: tuple[Change, ...]


def judge(shop: Workshop, prepared: Prepared, folder: Path) -> Judged | Refused:
    """Look at what changed, after every process of the session has ended.

    Args:
        shop: the actor's means.
        prepared: the tree, and what it was before the session.
        folder: a directory that did not exist while the session ran.

    Raises:
        ActorError: STOPPED when git cannot come to an end with what the session left.
    """
    why = unfit(prepared.tree)
    if why:
        return _left(f"{why}, so there is nothing to judge")
    # A pipe in place of a file of rules holds git up until its time is over; the first attempt is short.
    tries = (("glance.git", min(_GLANCE_S, shop.clone_timeout_s)), ("trusted.git", shop.clone_timeout_s))
    for name, seconds in tries:
        trusted = open_trusted(shop.git, prepared, folder / name)
        try:
            return _judged(shop, trusted, seconds)
        except OSError as error:
            return _left(f"the session left a tree that cannot be read ({error.strerror})")
        except ActorError as error:
            if error.code is not Code.UNFIT:
                raise
            failure = error
        if found := [printable(path) for path in pipes(prepared.tree)]:
            return _left(f"the session put pipes or devices where git reads its rules: {', '.join(found[:_SHOWN])}")
    raise ActorError(Code.STOPPED, f"what the session left could not be judged: {failure.message}")


def unfit(tree: Path) -> str:
    """Why there is no tree to look at, or nothing."""
    try:
        if tree.is_symlink() or not tree.is_dir():
            return "the session removed its own working tree"
        with os.scandir(tree):
            return ""
    except OSError as error:
        return f"the session left a working tree that cannot be entered ({error.strerror})"


def _left(because: str) -> Refused:
    return Refused(f"{because}; nothing was pushed", settled=True)


def _judged(shop: Workshop, trusted: Trusted, seconds: float) -> Judged | Refused:
    """Cheapest first: paths and sizes before any file is read."""
    capability, base, quick = shop.capability, trusted.base, trusted.within(seconds)
    roots = capability.writes_only_under
    found = survey(quick, roots, capability.scratch)
    # Where links lead through other links can be told when all modes are known, at the end.
    early = judge_boundary(capability, found.inside, found.outside, found.unholdable, {})
    for verdict in (early, judge_size(found.inside, shop.change_limits)):
        if not verdict.passed:
            return _refused(shop, verdict)
    if not found.inside:
        return _nothing(shop, quick, found)
    staged, unholdable = stage(quick, found.inside)
    if not staged and not unholdable:
        return _nothing(shop, quick, found)
    outside = [change for change in staged if not under(change.path, roots)]
    inside = [change for change in staged if under(change.path, roots)]
    changes = inspected(quick.git, inside, shop.finds_secret)
    verdict = judge_boundary(capability, changes, outside, unholdable, base.links)
    return Judged(trusted, changes) if verdict.passed else _refused(shop, verdict)


def judge_pen(shop: Workshop, judged: Judged, record: GateRecord) -> Judged | Refused:
    """See that a change which may be delivered is what the session's only pen wrote, and all of it."""
    verdict = judge_gated(judged.changes, digests(judged.trusted, judged.changes), record)
    return judged if verdict.passed else _refused(shop, verdict)


def _refused(shop: Workshop, verdict: Verdict) -> Refused:
    shop.journal.event(
        "refused", level="warn", judge=verdict.judge, findings=[str(finding) for finding in verdict.findings[:_SHOWN]]
    )
    because = f"the change was refused and nothing of it was pushed: {_listed(verdict.findings)}"
    return Refused(shop.journal.redact(because), settled=True)


def _listed(findings: Sequence[Finding]) -> str:
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return "; ".join(str(finding) for finding in findings[:_SHOWN]) + more


def _nothing(shop: Workshop, trusted: Trusted, found: Survey) -> Refused:
    roots = ", ".join(shop.capability.writes_only_under)
    only_ignored = ignored(trusted, shop.capability.writes_only_under)
    if only_ignored:
        paths = ", ".join(printable(path) for path in only_ignored[:_SHOWN])
        because = f"the session made only files that the repository ignores ({paths}), which are never committed"
    elif found.inside or found.as_before:
        because = f"the session left every file under {roots} as it was"
    else:
        because = f"the session changed nothing under {roots}"
    return Refused(shop.journal.redact(because), settled=True)
