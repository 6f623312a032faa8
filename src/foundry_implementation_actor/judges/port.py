"""What a judge of a class body is given and gives back."""

from __future__ import annotations

from typing import Protocol

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict

__all__ = ["App", "BodyJudge", "Run"]


class BodyJudge(Protocol):
    """One judge. It never lands, never refuses by exception, and never says passed unread.

    A fault of the judge itself (crash, time, memory, nothing ran) is UNJUDGED with its cause.
    """

    @property
    def name(self) -> str:
        """`syntax`, `strict-types`, `shape`, `linkage`, `construction` or `own-test`."""
        ...

    def judge(self, app: App, candidate: Candidate, run: Run) -> Verdict:
        """The verdict on a candidate; only findings that the candidate adds count."""
        ...
