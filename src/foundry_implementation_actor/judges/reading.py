"""From what a language saw to a verdict."""

from __future__ import annotations

from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.languages.port import Reading


def verdict_on(judge: str, reading: Reading) -> Verdict:
    """Findings refuse; without them a cause leaves the body unjudged; without both it passed."""
    outcome = Outcome.REFUSED if reading.findings else Outcome.UNJUDGED if reading.cause else Outcome.PASSED
    return Verdict(judge, outcome, reading.findings, reading.cause, reading.evidence)
