"""The judge of a session whose only pen is the gate: the change is what the gate wrote, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from foundry_implementation_actor.domain.change import EXECUTABLE, REGULAR, Change, Kind, printable
from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.domain.verdict import Finding, Outcome, Verdict

NAME = "gate"


def judge_gated(changes: Sequence[Change], digests: Mapping[str, str], record: GateRecord) -> Verdict:
    """Refuse every changed path that the gate did not write with exactly these bytes, and every one that is missing.

    Args:
        changes: what would be committed.
        digests: the SHA-256 of what lies at each changed path.
        record: what the gate wrote.
    """
    findings = [finding for change in changes for finding in _strange(change, digests, record)]
    changed = {change.path for change in changes}
    for path, body in record.bodies.items():
        if body.differs and path not in changed:
            message = (
                "was landed by the gate and is not in the change: it was undone since, or the repository ignores it"
            )
            findings.append(Finding("missing", printable(path), message))
    return Verdict(NAME, Outcome.REFUSED if findings else Outcome.PASSED, tuple(findings))


def _strange(change: Change, digests: Mapping[str, str], record: GateRecord) -> Iterator[Finding]:
    path, body = printable(change.path), record.bodies.get(change.path)
    if body is None:
        yield Finding(
            "not-landed", path, f"was {change.kind}, and not by the gate, which is the only pen of this session"
        )
    elif change.kind is Kind.DELETED or digests.get(change.path) != body.digest:
        yield Finding("other-bytes", path, "is not what the gate landed there")
    elif change.mode != (change.mode_before or REGULAR) or change.mode not in {REGULAR, EXECUTABLE}:
        yield Finding("mode", path, f"has the mode {change.mode}, which the gate gave to no file")
