"""An app as the landing gate's judges see it, and the way they run commands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.command import Command, Completed


class Run(Protocol):
    """Runs a command in isolation and returns when every descendant is dead.

    The candidate and its companions stand at their live paths, everything else of the app is
    read-only, `/tmp` and HOME are private, the network is off unless the app asks for it. With
    `original`, the command sees the app as it is, without candidate and companions. A program that
    is not there gives `Ended.NOT_FOUND`.
    """

    @property
    def note(self) -> str:
        """What this host could not isolate, one sentence; empty when nothing is missing."""
        ...

    def __call__(self, command: Command, *, original: bool = False) -> Completed: ...


@dataclass(frozen=True)
class App:
    """What the judges know of the app: where it is and how its language's tools are called.

    `root` is the real path of the app, at which isolated commands see it too. `source` and `tests`
    are its source and test trees relative to the root (with `{plugin}` filled where it stands).
    `imports` are the directories, relative to the root, that modules are imported from (Python).
    `interpreter` is an argv prefix (`("…/python",)`, `("php",)`). `analyser` and `runner` are argvs
    of the app's own tools, empty when it has none. `construct` is the argv that builds a class in
    the app's container, empty when there is none. `environment` is whole. Times are in seconds.
    `hidden` are places of the gate's caller that judged code is not to see, besides users' homes. With `shown`, these
    alone are seen there besides the root and the gate's own interpreter: what the app names or links to is not.
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
    imports: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] | None = None
