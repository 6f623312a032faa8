"""What a gate wrote during the sessions of a run, as the actor remembers it: nothing of it was read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GateBody:
    """What stands in one file since the gate last wrote it.

    `path` is that of the repository. `name` is the class, `shop.Cart`, or the path for a file that was only
    scaffolded. `digest` is the SHA-256 of what the gate wrote, `before` of what stood there when it first wrote,
    empty when nothing did. `scaffold` says that its body is still to be
    written. `unjudged` are the judges that could not judge it.
    """

    path: str
    name: str
    digest: str
    before: str = ""
    scaffold: bool = False
    unjudged: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether it is another text than before."""
        return self.digest != self.before


@dataclass(frozen=True)
class GateRecord:
    """All that a gate did in the sessions of one run.

    `bodies` are by their paths in the repository. `landed` and `refused` count attempts, `staged` are the classes
    that were begun in sections and not finished.
    """

    bodies: Mapping[str, GateBody] = field(default_factory=dict)
    landed: int = 0
    refused: int = 0
    staged: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The counts in words."""
        open_ones = f", {len(self.staged)} left unfinished" if self.staged else ""
        return f"{self.landed} landed, {self.refused} refused{open_ones}"
