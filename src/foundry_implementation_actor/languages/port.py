"""The few names that every language module has; the judges call nothing else of a language.

A language module is pure: it parses bytes, builds commands and reads what came of them. It reads no
file and starts nothing itself; `run` is handed to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate, Place
from foundry_implementation_actor.domain.verdict import Finding


@dataclass(frozen=True)
class Reading:
    """What was seen in a candidate.

    Findings refuse it. Without findings, a `cause` says why it could not be judged (a crash, a time
    limit, a tool that is missing); without a cause it passed. `evidence` is said in any case.
    """

    findings: tuple[Finding, ...] = ()
    cause: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Tests:
    """What came of one test file.

    `cause` says why the tests could not be asked at all (no runner, a module of the host missing).
    `fault` says why the run as a whole cannot stand although no test said no: it hung, ended early,
    left no report. `failures` are the tests and set-ups that said no. `passed` counts tests that
    passed and were expected to. `said` is one line about what was skipped and the like. `asked` names
    the tests that passed, `unasked` those that were skipped or that the host cannot ask. `broken` are
    the tests that failed before the app or a test had a part in it, by name, with the reason. `through`
    are files of the app, tests apart, that had a part in the `cause`.
    """

    collected: int = 0
    ran: int = 0
    passed: int = 0
    failures: tuple[Finding, ...] = ()
    fault: str = ""
    cause: str = ""
    said: str = ""
    asked: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()
    broken: Mapping[str, str] = field(default_factory=dict)
    through: frozenset[str] = frozenset()

    @property
    def green(self) -> bool:
        """Whether all that was collected ran, none said no, and at least one passed."""
        whole = self.collected == self.ran and not self.fault and not self.cause
        return whole and self.passed > 0 and not self.failures and not self.broken


class Language(Protocol):
    """A language module. Every function is total: bad input gives findings or a cause."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """As `App.language` spells it."""
        ...

    def syntax(self, app: App, candidate: Candidate, run: Run) -> Reading:
        """Whether the app's own interpreter parses the body."""
        ...

    def strict_types(self, candidate: Candidate) -> Reading | None:
        """Whether the body declares strict types; None where the language has no such thing."""
        ...

    def shape(self, candidate: Candidate) -> Reading:
        """Whether the body declares exactly what its place says, and drops nothing public."""
        ...

    def linkage(self, app: App, candidate: Candidate, own_test: bytes, run: Run) -> Reading:
        """Whether every name the body uses leads somewhere. `own_test` is the text of its test, or empty."""
        ...

    def class_name(self, place: Place) -> str:
        """The full name under which the app's container knows the class."""
        ...

    def command_environment(self, app: App) -> dict[str, str]:
        """The environment for a command of the app in this language."""
        ...

    def is_scaffold(self, content: bytes, class_: str) -> bool:
        """Whether a body is still what `make` wrote: no method does anything yet."""
        ...

    def own_test(self, app: App, path: str, run: Run, *, original: bool = False) -> Tests:
        """Run one test file (relative to the app's root), with the candidate or on the original."""
        ...
