"""A judge and an isolation for tests of what happens around the judging."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding, Outcome, Verdict
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House


@dataclass
class ByWords:
    """Refuses a body that holds `WRONG`, cannot judge one that holds `DARK`, lets every other pass.

    `seen` are the bodies it was given. `before` is called with each candidate before the verdict.
    """

    name: str = "shape"
    seen: list[bytes] = field(default_factory=list)
    before: Callable[[Candidate], None] = lambda _: None

    def judge(self, app: App, candidate: Candidate, run: Run) -> Verdict:
        self.seen.append(candidate.content)
        self.before(candidate)
        if b"WRONG" in candidate.content:
            finding = Finding("word", candidate.place.path, "holds WRONG")
            return Verdict(self.name, Outcome.REFUSED, (finding,))
        if b"DARK" in candidate.content:
            return Verdict(self.name, Outcome.UNJUDGED, cause="it is dark")
        return Verdict(self.name, Outcome.PASSED)


class NoRun:
    """An isolation for judges that run nothing."""

    note = ""

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        return Completed(command.argv, 127, b"", b"", Ended.NOT_FOUND, 0.0)


@contextlib.contextmanager
def nowhere(app: App, candidates: Sequence[Candidate]) -> Iterator[Run]:
    yield NoRun()


def gate(root: Path, judge: ByWords | None = None, step: Callable[[str], None] = lambda _: None) -> Gate:
    """The gate of an app with one judge that runs nothing."""
    judges = (ByWords() if judge is None else judge,)
    return Gate(House.open(root), judges=judges, isolated=nowhere, step=step)


class Gatepost:
    """Holds the first thread that passes until it is opened; `reached` is set when one is held."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def hold(self, _: Candidate) -> None:
        first = not self.reached.is_set()
        self.reached.set()
        if first:
            assert self.opened.wait(20), "nobody opened"
