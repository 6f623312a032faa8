"""How ty is called and what it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.languages.python_place import TY_RULES, environment, search_path
from foundry_implementation_actor.system.install import install

_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class TyFinding:
    """One thing that ty says of a file: its rule, where (both counted from 1), and its sentence."""

    rule: str
    path: str
    line: int
    column: int
    message: str

    @property
    def quoted(self) -> list[str]:
        """The names and types that the sentence puts between backticks."""
        return _QUOTED.findall(self.message)


def command(
    app: App, argv: Sequence[str], roots: Sequence[Path], version: tuple[int, int] | None, paths: Sequence[str]
) -> Command:
    """Ask ty about files (relative to the app's root) and nothing else.

    Never with `-q`, which hides findings. The version is named because ty would else take the lowest
    that `requires-python` allows, and miss modules that are there.
    """
    options = ["--output-format", "gitlab", "--exit-zero", "--no-progress", "--color", "never"]
    options += ["--config-file", str(TY_RULES), "--project", str(app.root)]
    if app.interpreter and Path(app.interpreter[0]).is_absolute():
        options += ["--python", app.interpreter[0]]
    if version is not None:
        options += ["--python-version", f"{version[0]}.{version[1]}"]
    for folder in search_path(app, roots):
        options += ["--extra-search-path", folder]
    return Command((*argv, "check", *options, *paths), app.root, environment(app, roots), app.probe_timeout_s)


def read(completed: Completed) -> list[TyFinding] | str:
    """What ty found, or why it could not look."""
    if completed.ended is Ended.NOT_FOUND:
        return f"ty is not there; {install('gate')}"
    if completed.ended is not Ended.EXIT:
        return f"ty did not end within {completed.seconds:.0f} s ({completed.ended})"
    if completed.code != 0:
        return f"ty ended with {completed.code}: {completed.errors[-300:]}"
    try:
        found = [_finding(record) for record in json.loads(completed.stdout)]
    except (ValueError, KeyError, TypeError):
        return f"ty gave no findings that can be read: {completed.errors[-300:]}"
    for one in found:
        if one.rule in {"panic", "io"}:
            return f"ty gave up on {one.path}: {one.message[:300]}"
    return [one for one in found if one.rule != "invalid-syntax"]


def _finding(record: dict[str, object]) -> TyFinding:
    location = record["location"]
    if not isinstance(location, dict):
        raise TypeError
    begin = location["positions"]["begin"]
    rule, text = str(record["check_name"]), str(record["description"])
    message = text.removeprefix(f"{rule}: ")
    return TyFinding(rule, location["path"], begin["line"], begin["column"], message)


def added(found: Sequence[TyFinding], before: Sequence[TyFinding]) -> list[TyFinding]:
    """What is found more often than before; a finding that only moved to another line is not new."""
    left = Counter((one.rule, one.path, one.message) for one in before)
    new = []
    for one in found:
        key = (one.rule, one.path, one.message)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(one)
    return new
