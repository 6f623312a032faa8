"""Linkage of a PHP body by the app's own PHPStan, at level 0, in its raw format: `path:line:message`."""

from __future__ import annotations

import re

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.php_place import environment, last_line, why_silent
from foundry_implementation_actor.languages.php_probe import added
from foundry_implementation_actor.languages.port import Reading

_LINE = re.compile(r"(?P<path>/.+?|\?)(?: \(in context of [^)]*\))?:(?P<line>\d+|\?):(?P<message>.+)")
_OPTIONS = ("--level=0", "--error-format=raw", "--no-progress", "--no-interaction", "--no-ansi")
_FOUND = 1


def analyse(app: App, candidate: Candidate, run: Run) -> Reading:
    """What PHPStan finds in the body and did not find in the file before."""
    found, cause = _ask(app, candidate, run)
    if found and candidate.original:
        before, _ = _ask(app, candidate, run, original=True)
        found = added(found, before)
    return Reading(tuple(found), cause=cause)


def _ask(app: App, candidate: Candidate, run: Run, *, original: bool = False) -> tuple[list[Finding], str]:
    completed = run(_command(app, candidate.place.path), original=original)
    if completed.ended is Ended.NOT_FOUND:
        return [], f"the app's analyser {completed.argv[0]} is not there"
    if completed.ended is not Ended.EXIT:
        return [], why_silent(completed, "PHPStan")
    return _read(completed, str(app.root / candidate.place.path), candidate.place.path)


def _command(app: App, path: str) -> Command:
    asks = () if {"analyse", "analyze"} & set(app.analyser) else ("analyse",)
    autoload = () if any(word.startswith(("--autoload-file", "-a")) for word in app.analyser) else _autoload(app)
    argv = (*app.analyser, *asks, *_OPTIONS, *autoload, str(app.root / path))
    return Command(argv, app.root, environment(app), app.probe_timeout_s)


def _autoload(app: App) -> tuple[str, ...]:
    return ("--autoload-file", str(app.root / "vendor" / "autoload.php"))


def _read(completed: Completed, file: str, path: str) -> tuple[list[Finding], str]:
    """The findings in the file, or why the answer is none: neither code nor text is believed alone."""
    lines = [found for found in map(_LINE.fullmatch, completed.text.splitlines()) if found]
    trouble = [found["message"] for found in lines if found["path"] == "?" or "Internal error" in found["message"]]
    if trouble:
        return [], f"PHPStan had trouble of its own: {trouble[0][:300]}"
    findings = [
        Finding("phpstan", f"{path}:{found['line']}", found["message"]) for found in lines if found["path"] == file
    ]
    if (completed.code == 0 and not lines) or (completed.code == _FOUND and findings):
        return findings, ""
    if completed.code == _FOUND and lines:
        return [], f"PHPStan named only other files: {lines[0]['path']}: {lines[0]['message'][:200]}"
    said = last_line(completed.errors or completed.text)
    return [], f"PHPStan ended with {completed.code} and named nothing" + (f": {said}" if said else "")
