"""One attempt as a line of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.unit import Candidate, digest
from foundry_implementation_actor.gate.answer import verdicts
from foundry_implementation_actor.gate.ask import Ask
from foundry_implementation_actor.gate.outcome import Judged, Landed, Refused
from foundry_implementation_actor.system.secrets import Redact

_FINDINGS = 5
_LONGEST = 400


def record(act: str, asks: Sequence[Ask], outcome: Landed | Refused, redact: Redact) -> dict[str, Any]:
    """When, what, the digests, every verdict with its seconds, and what came of it."""
    judged = [_judged(body, redact) for body in outcome.bodies]
    asked = [{"plugin": ask.target.plugin, "class": ask.target.class_} for ask in asks]
    because = outcome.because if isinstance(outcome, Refused) else ""
    return {
        "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "act": act,
        "landed": isinstance(outcome, Landed),
        "because": clip(redact(because), _LONGEST),
        "bodies": judged or asked,
    }


def _judged(body: Judged, redact: Redact) -> dict[str, Any]:
    candidate = body.candidate
    said = [{**verdict, **_short(verdict, redact)} for verdict in verdicts(body.verdicts)]
    return {**_identity(candidate), "verdicts": said}


def _identity(candidate: Candidate) -> dict[str, Any]:
    place = candidate.place
    before, after = digest(candidate.original), digest(candidate.content)
    named = {"plugin": place.target.plugin, "class": place.target.class_, "file": place.path}
    return {**named, "before": before, "after": after, "bytes": len(candidate.content)}


def _short(verdict: dict[str, Any], redact: Redact) -> dict[str, Any]:
    findings = [clip(redact(finding), _LONGEST) for finding in verdict["findings"][:_FINDINGS]]
    texts = {key: clip(redact(verdict[key]), _LONGEST) for key in ("cause", "evidence")}
    return {"findings": findings, **texts}
