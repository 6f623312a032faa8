"""From a tree that a session has left to a change that may be delivered, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from foundry_implementation_actor.domain.change import Change, printable
from foundry_implementation_actor.domain.run import Refused
from foundry_implementation_actor.domain.verdict import Finding, Verdict
from foundry_implementation_actor.judges.boundary import judge_boundary, judge_size
from foundry_implementation_actor.runs.workshop import Workshop
from foundry_implementation_actor.workspace.capture import Prepared, Survey, ignored, inspected, stage, survey
from foundry_implementation_actor.workspace.checkout import Checkout

_SHOWN = 20


def judge(shop: Workshop, checkout: Checkout, prepared: Prepared) -> tuple[Change, ...] | Refused:
    """Look at what changed, cheapest first: paths and sizes before any file is read."""
    capability = shop.capability
    if checkout.tree.is_symlink() or not checkout.tree.is_dir():
        return Refused("the session removed its own working tree, so there is nothing to judge", settled=True)
    found = survey(checkout, prepared, capability.writes_only_under, capability.scratch)
    early = judge_boundary(capability, found.inside, found.outside, found.unholdable)
    for verdict in (early, judge_size(found.inside, shop.change_limits)):
        if not verdict.passed:
            return _refused(shop, verdict)
    if not found.inside:
        return _nothing(shop, checkout, found)
    changes, unholdable = stage(checkout, prepared, found.inside)
    if not changes and not unholdable:
        return _nothing(shop, checkout, found)
    changes = inspected(checkout.git, changes, shop.finds_secret)
    verdict = judge_boundary(capability, changes, (), unholdable)
    return changes if verdict.passed else _refused(shop, verdict)


def _refused(shop: Workshop, verdict: Verdict) -> Refused:
    shop.journal.event(
        "refused", level="warn", judge=verdict.judge, findings=[str(finding) for finding in verdict.findings[:_SHOWN]]
    )
    because = f"the change was refused and nothing of it was pushed: {_listed(verdict.findings)}"
    return Refused(shop.journal.redact(because), settled=True)


def _listed(findings: Sequence[Finding]) -> str:
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return "; ".join(str(finding) for finding in findings[:_SHOWN]) + more


def _nothing(shop: Workshop, checkout: Checkout, found: Survey) -> Refused:
    roots = ", ".join(shop.capability.writes_only_under)
    only_ignored = ignored(checkout, shop.capability.writes_only_under)
    if only_ignored:
        paths = ", ".join(printable(path) for path in only_ignored[:_SHOWN])
        because = f"the session made only files that the repository ignores ({paths}), which are never committed"
    elif found.inside:
        because = f"the session left every file under {roots} as it was"
    else:
        because = f"the session changed nothing under {roots}"
    return Refused(shop.journal.redact(because), settled=True)
