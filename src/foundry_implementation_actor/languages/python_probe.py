"""Importing a body in the app's own interpreter: how that is asked, and what the answer says."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Place
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.python_filters import Question
from foundry_implementation_actor.languages.python_place import INSIDE, environment


@dataclass(frozen=True)
class Probed:
    """What came of an import: findings, how overrides compare, and which questions are true.

    `wrong` says how the process ended when it gave no answer; `absent` that it could not start.
    `stopped` says that the import raised, so that nothing behind it was looked at; `broke` that the
    import went well and the probe did not.
    """

    findings: tuple[Finding, ...] = ()
    overrides: dict[str, dict[str, bool]] = field(default_factory=dict)
    true: frozenset[tuple[str, str, str]] = frozenset()
    wrong: str = ""
    absent: str = ""
    stopped: bool = False
    broke: str = ""


def probe(
    app: App, place: Place, roots: Sequence[Path], questions: Sequence[Question] = ()
) -> tuple[Command, Callable[[Completed], Probed]]:
    """The command that imports the place's module first of all, and the reader of its answer."""
    nonce = secrets.token_hex(16)
    asked = {
        "nonce": nonce, "module": place.module, "class": place.target.class_, "root": str(app.root),
        "file": str(app.root / place.path), "is_test": place.is_test,
        "questions": [question[:3] for question in questions],
    }  # fmt: skip
    argv = (*app.interpreter, str(INSIDE / "python_probe.py"))
    env, stdin = environment(app, roots), json.dumps(asked).encode()
    command = Command(argv, app.root, env, app.probe_timeout_s, stdin=stdin)
    return command, lambda completed: _read(completed, nonce, place.path)


def _read(completed: Completed, nonce: str, path: str) -> Probed:
    if completed.ended is Ended.NOT_FOUND:
        return Probed(absent=f"the interpreter {completed.argv[0]} is not there")
    answers = [line for line in completed.text.splitlines() if line.startswith(f"{nonce} ")]
    if len(answers) != 1:
        return Probed(wrong=_how(completed))
    said: dict[str, Any] = json.loads(answers[0].removeprefix(nonce))
    findings = tuple(_finding(record, path) for record in said["findings"])
    true = frozenset((one[0], one[1], one[2]) for one in said.get("true", ()))
    stopped, broke = said.get("stopped", False), said.get("broke", "")
    return Probed(findings, said.get("overrides", {}), true, stopped=stopped, broke=broke)


def _finding(record: dict[str, Any], path: str) -> Finding:
    where = f"{path}:{record['line']}" if record["line"] else path
    return Finding(record["rule"], where, record["message"])


def _how(completed: Completed) -> str:
    if completed.ended is Ended.TIMEOUT:
        return f"importing it does not end within {completed.seconds:.0f} s"
    if completed.ended is not Ended.EXIT:
        return f"importing it was ended: {completed.ended}"
    return f"importing it ends the process with {completed.code}: {completed.errors[-300:]}".rstrip(": ")
