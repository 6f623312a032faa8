"""What comes of an ask: landed, refused, or staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foundry_implementation_actor.domain.unit import Candidate, Place, Target, digest
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.languages.port import Tests


@dataclass(frozen=True)
class Timed:
    """A verdict and the seconds it took."""

    verdict: Verdict
    seconds: float


@dataclass(frozen=True)
class Judged:
    """A candidate with every verdict on it, in the order of the judges."""

    candidate: Candidate
    verdicts: tuple[Timed, ...] = ()

    def of(self, outcome: Outcome) -> tuple[Verdict, ...]:
        """The verdicts with this outcome."""
        return tuple(timed.verdict for timed in self.verdicts if timed.verdict.outcome is outcome)


@dataclass(frozen=True)
class Trial:
    """What the judges said. `note` says what this host could not isolate, empty when nothing."""

    bodies: tuple[Judged, ...]
    note: str = ""


@dataclass(frozen=True)
class Landed:
    """Every body landed. `notes` say what a caller should know besides."""

    bodies: tuple[Judged, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """Nothing landed, and why. `unfit` says that this host could not judge, not that a body is wrong."""

    because: str
    bodies: tuple[Judged, ...] = ()
    unfit: bool = False


@dataclass(frozen=True)
class Again:
    """The answer that the same finish got before."""

    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Text:
    """A class's current text: where it lies, its bytes, and the digest that `expect` takes."""

    place: Place
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hex."""
        return digest(self.content)


@dataclass(frozen=True)
class Tested:
    """What one test file says of the text that stands."""

    target: Target
    path: str
    tests: Tests
