"""What a doctor says of one thing that a run or a judge needs: how it was found, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a thing was found; with a warning less is done, judged or held than could be."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was seen, and the command, variable or key that mends it."""

    subject: str
    state: State
    seen: str
    mend: str = ""

    @property
    def stops(self) -> bool:
        """Whether nothing can be done before it is mended."""
        return self.state in {State.MISSING, State.WRONG}
