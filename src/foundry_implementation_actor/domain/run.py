"""A run's doors, limits, the ways in which its session can end, and its one answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from foundry_implementation_actor.domain.price import Prices


class Door(StrEnum):
    """The two doors of the actor, by their ids on the card."""

    IMPLEMENT = "implement-task"
    ASSESS = "assess-task"


@dataclass(frozen=True)
class Budget:
    """What one session at a door may spend, and the variables that raise it.

    From `cost_usd` on, the limits are the same at both doors, so that each has one variable
    (`session.budget`); 0 is no limit. `cost_usd` is counted by `prices`. Disk is what it adds to the
    places that it may write to, in bytes and in files; processes and memory are of all that it runs.
    """

    turns: int
    turns_variable: str
    clock_s: int
    clock_variable: str
    silence_s: int
    silence_variable: str
    cost_usd: float = 0.0
    output_bytes: int = 256 * 1024 * 1024
    disk_bytes: int = 0
    disk_files: int = 0
    processes: int = 0
    memory_bytes: int = 0
    prices: Prices = field(default_factory=Prices)


class Cause(StrEnum):
    """Why a session ended; only FINISHED means that its work may be judged."""

    FINISHED = "finished"
    TURNS = "turns"
    CLOCK = "clock"
    SILENT = "silent"
    MONEY = "money"
    OUTPUT = "output"
    DISK = "disk"
    FILES = "files"
    PROCESSES = "processes"
    MEMORY = "memory"
    PROVIDER = "provider"
    CRASHED = "crashed"
    ESCAPED = "escaped"
    NO_GATE = "no-gate"
    STOPPED = "stopped"


@dataclass(frozen=True)
class SessionEnd:
    """The one end of a session.

    `text` is the last thing it said; `detail` says in words what went wrong, empty when finished;
    `turns`, tokens and `cost_usd` are the larger of what the actor counted, in the session's stream and at its door
    to the model, and what the session itself reported. `cost_estimated` says that the cost is the actor's count
    and rests on a guess: a model without a price, or an answer whose tokens were never stated. `seconds` is how
    long it ran.
    """

    cause: Cause
    text: str = ""
    detail: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_estimated: bool = False
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether it came to its own end without an error."""
        return self.cause is Cause.FINISHED

    def after(self, earlier: SessionEnd) -> SessionEnd:
        """This end, with what an earlier session of the same run said and used as well."""
        return replace(
            self,
            text="\n\n".join(text for text in (earlier.text, self.text) if text),
            turns=earlier.turns + self.turns,
            cost_usd=earlier.cost_usd + self.cost_usd,
            input_tokens=earlier.input_tokens + self.input_tokens,
            output_tokens=earlier.output_tokens + self.output_tokens,
            cost_estimated=earlier.cost_estimated or self.cost_estimated,
            seconds=earlier.seconds + self.seconds,
        )


@dataclass(frozen=True)
class Accepted:
    """The branch that was pushed, its commit, and the images that hold exactly that commit."""

    branch: str
    commit: str
    images: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """The `task-implemented-result` of the card."""
        return {"accepted": True, "branch": self.branch, "images": list(self.images)}


@dataclass(frozen=True)
class Refused:
    """A business refusal: an answer, not an error.

    `because` is for the caller. `settled` says that the same request asked again would be paid for
    again and refused again for the same cause, so that the answer may be kept.
    """

    because: str
    settled: bool = False

    def wire(self) -> dict[str, Any]:
        """The `task-refused-result` of the card."""
        return {"accepted": False, "because": self.because}


Reply = Accepted | Refused
