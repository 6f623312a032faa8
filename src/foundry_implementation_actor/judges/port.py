"""What a judge of a class body is given and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict

Run = Callable[[Command], Completed]
"""Runs a command in isolation: the candidate stands at its live path, everything else of the app is
read-only, the network is off, every descendant is dead when it returns."""


@dataclass(frozen=True)
class App:
    """What the judges know of the app: where it is and how its language's tools are called.

    `root` is the real path of the app, at which isolated commands see it too. `source` and `tests`
    are its source and test trees relative to the root (with `{plugin}` filled where it stands).
    `interpreter` is an argv prefix (`("…/python",)`, `("php",)`). `analyser` and `runner` are argvs
    of the app's own tools, empty when it has none. `construct` is the argv that builds a class in
    the app's container, empty when there is none. `environment` is whole. Times are in seconds.
    """

    root: Path
    language: str
    source: str
    tests: str
    interpreter: tuple[str, ...]
    analyser: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    construct: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    probe_timeout_s: float = 20.0
    test_timeout_s: float = 60.0
    network: bool = False


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
