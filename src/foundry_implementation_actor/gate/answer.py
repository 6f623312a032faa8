"""Outcomes as the dicts that callers get (CONTRACT 8), and in words."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.unit import digest
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate.outcome import Again, Judged, Landed, Refused, Tested, Text, Timed
from foundry_implementation_actor.gate.plan import Unmade
from foundry_implementation_actor.gate.scaffold import Made
from foundry_implementation_actor.gate.staging import Staged

Answer = dict[str, Any]

REFUSED = "refused"
"""The `code` of a business refusal; the other codes are those of `domain.error`."""

LONGEST = 16_384
"""Bytes of one diagnostic; of a longer one, head and tail are kept."""


def answer(outcome: Landed | Refused | Staged | Again) -> Answer:
    """The dict for an outcome: `ok`, and what CONTRACT 8 names; further keys are ours."""
    match outcome:
        case Again():
            return dict(outcome.answer)
        case Staged():
            return {"ok": True, **staged(outcome), "verified": "", "note": "staged only; nobody judged it yet"}
        case Refused():
            return _refused(outcome)
        case Landed(bodies=(body,)):
            return {"ok": True, **_landed(body), **_notes(outcome.notes)}
        case Landed():
            every = [_landed(body) for body in outcome.bodies]
            said = "; ".join(f"{one['plugin']}.{one['class']}: {one['verified']}" for one in every)
            return {"ok": True, "verified": said, "bodies": every, **_notes(outcome.notes)}


def staged(body: Staged) -> Answer:
    """How far a body has arrived."""
    named = {"plugin": body.target.plugin, "class": body.target.class_}
    if body.damage:
        return {**named, "damage": body.damage}
    return {**named, "sections": body.sections, "bytes": body.size, "sha256": body.digest}


def size(staged: Mapping[str, Any]) -> str:
    """How much of a body has arrived, in words."""
    count = staged["sections"]
    return f"{count} section{'s' if count > 1 else ''}, {staged['bytes']} bytes"


def made(outcome: Made | Unmade) -> Answer:
    """What `make` made, or would make."""
    if isinstance(outcome, Unmade):
        return {"ok": False, "error": outcome.because, "code": REFUSED}
    return {"ok": True, "made": list(outcome.files), "written": outcome.written}


def read(outcome: Text | Refused) -> Answer:
    """A class's text and its digest; a text that is no UTF-8 comes in base64."""
    if isinstance(outcome, Refused):
        return _refused(outcome)
    place = outcome.place
    named = {"file": place.path, "class": place.target.class_, "plugin": place.target.plugin}
    told = {"digest": outcome.digest, "bytes": len(outcome.content), "own_test": place.own_test}
    try:
        return {"ok": True, **named, **told, "content": outcome.content.decode()}
    except UnicodeDecodeError:
        return {"ok": True, **named, **told, "content_base64": base64.b64encode(outcome.content).decode()}


def tested(outcome: Tested | Refused) -> Answer:
    """What a class's own test says of the text that stands."""
    if isinstance(outcome, Refused):
        return _refused(outcome)
    tests, target = outcome.tests, outcome.target
    counted = {"collected": tests.collected, "ran": tests.ran, "passed": tests.passed}
    named = {"file": outcome.path, "class": target.class_, "plugin": target.plugin, **counted}
    if tests.green:
        return {"ok": True, **named, "verified": f"own-test ({tests.said})"}
    reasons = [tests.cause, tests.fault, *map(str, tests.failures)]
    said = "\n".join(filter(None, reasons)) or f"nothing passed: {tests.said}"
    return {"ok": False, "error": clip(said, LONGEST), "code": Code.UNFIT.value if tests.cause else REFUSED, **named}


def error_answer(error: ActorError) -> Answer:
    """The dict for an ask that could not be answered."""
    return {"ok": False, "error": clip(str(error), LONGEST), "code": error.code.value}


def verified(body: Judged) -> str:
    """Which judges passed a body, what they saw besides, and what nobody judged and why."""
    passed = [_with(verdict.judge, verdict.evidence) for verdict in body.of(Outcome.PASSED)]
    return _sentence(", ".join(passed) or "nothing", body.of(Outcome.UNJUDGED))


def verdicts(timed: Iterable[Timed]) -> list[Answer]:
    """Every verdict with its seconds."""
    return [
        {
            "judge": one.verdict.judge,
            "outcome": one.verdict.outcome.value,
            "seconds": round(one.seconds, 4),
            "findings": [str(finding) for finding in one.verdict.findings],
            "cause": one.verdict.cause,
            "evidence": one.verdict.evidence,
        }
        for one in timed
    ]


def diagnostic(body: Judged) -> str:
    """Why a body was refused: the judge and every finding, then what passed before; empty when it was not."""
    refusals = body.of(Outcome.REFUSED)
    if not refusals:
        return ""
    passed = [verdict.judge for verdict in body.of(Outcome.PASSED)]
    after = f"\npassed before it: {', '.join(passed)}" if passed else ""
    return "\n".join(map(_refusal, refusals)) + after


def _refusal(verdict: Verdict) -> str:
    lines = [str(finding) for finding in verdict.findings] or [verdict.cause or "it gave no reason"]
    said = [verdict.evidence] if verdict.evidence else []
    return f"refused by {verdict.judge}: " + "\n".join(lines + said)


def _refused(outcome: Refused) -> Answer:
    code = Code.UNFIT.value if outcome.unfit else REFUSED
    found: Answer = {"ok": False, "error": clip(outcome.because, LONGEST), "code": code}
    asked = [body for body in outcome.bodies if body.verdicts]
    if len(asked) == 1:
        return {**found, **_named(asked[0]), "verdicts": verdicts(asked[0].verdicts)}
    if asked:
        found["bodies"] = [{**_named(body), "verdicts": verdicts(body.verdicts)} for body in asked]
    return found


def _landed(body: Judged) -> Answer:
    told = {"verified": verified(body), "digest": digest(body.candidate.content)}
    return {**_named(body), **told, "verdicts": verdicts(body.verdicts)}


def _named(body: Judged) -> Answer:
    place = body.candidate.place
    return {"file": place.path, "class": place.target.class_, "plugin": place.target.plugin}


def _sentence(passed: str, unjudged: Iterable[Verdict]) -> str:
    left = ", ".join(
        _with(verdict.judge, "; ".join(filter(None, (verdict.cause, verdict.evidence)))) for verdict in unjudged
    )
    return f"{passed}; not judged: {left}" if left else passed


def _with(name: str, said: str) -> str:
    return f"{name} ({said})" if said else name


def _notes(notes: tuple[str, ...]) -> Mapping[str, Any]:
    return {"notes": list(notes)} if notes else {}
