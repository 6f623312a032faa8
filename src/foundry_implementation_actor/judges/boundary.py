"""The boundary judge: does a change stay inside the component roots, and is it one that may land?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pathspec

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.change import EXECUTABLE, GITLINK, LINK, REGULAR, Change, printable
from foundry_implementation_actor.domain.verdict import Finding, Outcome, Verdict
from foundry_implementation_actor.judges.links import bent, leads_out, links_after

NAME = "boundary"


@dataclass(frozen=True)
class ChangeLimits:
    """How large a change may be: files, and bytes of all added and changed files together."""

    files: int
    patch_bytes: int


def judge_size(changes: Sequence[Change], limits: ChangeLimits) -> Verdict:
    """Refuse a change with too many files or bytes; looks at nothing but counts and sizes."""
    findings = []
    if len(changes) > limits.files:
        message = f"{len(changes):,} files are changed, more than MAX_CHANGED_FILES={limits.files:,}"
        findings.append(Finding("too-many-files", "", message))
    total = sum(change.size for change in changes)
    if total > limits.patch_bytes:
        largest = max(changes, key=lambda change: change.size)
        message = (
            f"the change holds {total:,} bytes, more than MAX_PATCH_BYTES={limits.patch_bytes:,}; "
            f"the largest file is {printable(largest.path)} with {largest.size:,}"
        )
        findings.append(Finding("too-large", "", message))
    return _verdict(findings)


def judge_boundary(
    capability: Capability,
    inside: Sequence[Change],
    outside: Sequence[Change],
    unholdable: Sequence[tuple[str, str]],
    links: Mapping[str, str],
) -> Verdict:
    """Refuse anything outside of the roots, protected, or of a kind that may not be pushed.

    Args:
        capability: its component roots and protected patterns are the rule.
        inside: what changed under the roots, with link targets and secret marks.
        outside: what changed anywhere else.
        unholdable: paths that no commit can hold, each with the reason.
        links: every link of the base, path to target.
    """
    roots = ", ".join(capability.writes_only_under)
    findings = [
        Finding("outside", printable(c.path), f"{c.kind} outside of the component roots ({roots})") for c in outside
    ]
    findings += [Finding("unholdable", printable(path), reason) for path, reason in unholdable]
    findings += _protected(inside, capability.protected)
    after = links_after(links, inside)
    for change in inside:
        findings += _kind(change, capability, after)
    for path in bent(links, inside, capability):
        message = f"is a link that leads out of its component since this change, by {printable(links[path])!r}"
        findings.append(Finding("link", printable(path), message))
    return _verdict(findings)


def barred(capability: Capability, path: str) -> str:
    """Why a change of a path would be refused whatever it is; empty when it may be changed."""
    roots = capability.writes_only_under
    if not any(path.startswith(root) for root in roots):
        return f"{path} lies outside of the component roots ({', '.join(roots)})"
    if any(path.startswith(folder) for folder in capability.scratch):
        return f"{path} lies in a scratch directory, which is never committed"
    rules = pathspec.GitIgnoreSpec.from_lines(capability.protected)
    return f"{path} is protected" if rules.match_file(path) else ""


def _verdict(findings: Sequence[Finding]) -> Verdict:
    return Verdict(NAME, Outcome.REFUSED if findings else Outcome.PASSED, tuple(findings))


def _protected(changes: Sequence[Change], patterns: Sequence[str]) -> Iterable[Finding]:
    if not patterns:
        return
    rules = pathspec.GitIgnoreSpec.from_lines(patterns)
    for change in changes:
        if rules.match_file(change.path):
            yield Finding("protected", printable(change.path), f"is protected and was {change.kind}")


def _kind(change: Change, capability: Capability, links: Mapping[str, str]) -> Iterable[Finding]:
    path = printable(change.path)
    if change.mode == GITLINK:
        yield Finding("gitlink", path, "is a repository inside the repository; commit files, not a pointer")
    elif change.mode == LINK and _turns_back(change.target):
        message = f"is a link whose target goes up after it went down, to {printable(change.target)!r}"
        yield Finding("link", path, f"{message}; write it with `..` at its beginning only")
    elif change.mode == LINK and leads_out(change.path, links, capability):
        yield Finding("link", path, f"is a link that leads out of its component, to {printable(change.target)!r}")
    elif change.blob and change.mode not in {REGULAR, EXECUTABLE, LINK}:
        yield Finding("mode", path, f"has the mode {change.mode}, which no checked-out file should have")
    if change.holds_secret:
        yield Finding("secret", path, "holds a secret of the actor")


def _turns_back(target: str) -> bool:
    """Whether `..` stands after a name: when that name is a link itself, the way leads anywhere."""
    parts = [part for part in target.split("/") if part not in {"", "."}]
    return any(after == ".." and before != ".." for before, after in pairwise(parts))
