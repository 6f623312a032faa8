"""Linkage of a PHP body by this package's own probe: php-parser for the names, reflection for what is there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.php_place import PLAIN, ask, class_name, why_silent
from foundry_implementation_actor.languages.port import Reading


def probe(app: App, candidate: Candidate, run: Run) -> Reading:
    """Load the body beside its collaborators and look where its names lead; only what it adds counts."""
    found, cause = _look(app, candidate, run)
    if found and candidate.original:
        before, _ = _look(app, candidate, run, original=True)
        found = added(found, before)
        if not found and not cause:
            cause = "the file cannot be loaded to the end, and could not before" if _stopped(before) else ""
    return Reading(tuple(found), cause=cause)


def added(now: list[Finding], before: list[Finding]) -> list[Finding]:
    """The findings that were not there before, whatever line they stood on."""
    known = Counter((one.rule, one.message) for one in before)
    fresh = []
    for one in now:
        key = (one.rule, one.message)
        if known[key]:
            known[key] -= 1
        else:
            fresh.append(one)
    return fresh


def _look(app: App, candidate: Candidate, run: Run, *, original: bool = False) -> tuple[list[Finding], str]:
    place = candidate.place
    question = {"root": str(app.root), "path": place.path, "class": class_name(place), "test": place.is_test}
    answer, completed = ask(app, run, "linkage.php", question, app.probe_timeout_s, *PLAIN, original=original)
    if answer is None:
        return [], why_silent(completed, "the probe")
    return [_finding(one, place.path) for one in answer["findings"]], answer["cause"]


def _finding(one: dict[str, Any], path: str) -> Finding:
    return Finding(one["rule"], f"{path}:{one['line']}", one["message"])


def _stopped(findings: list[Finding]) -> bool:
    """Whether the probe stopped at these, before it could look at names."""
    return any(one.rule in {"engine", "ends-process", "class-missing"} for one in findings)
