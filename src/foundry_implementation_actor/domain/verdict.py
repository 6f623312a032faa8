"""What a judge says: passed, refused, or unjudged with the cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The three outcomes; a judge that could not judge never says passed."""

    PASSED = "passed"
    REFUSED = "refused"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Finding:
    """One reason to refuse: the rule, the place it was broken, and what is wrong there."""

    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True)
class Verdict:
    """One judge's word on one candidate or change.

    `cause` says why it could not judge; `evidence` says what the judge saw besides, whatever the outcome.
    """

    judge: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    cause: str = ""
    evidence: str = ""

    @property
    def passed(self) -> bool:
        """Whether the judge looked and found nothing."""
        return self.outcome is Outcome.PASSED
