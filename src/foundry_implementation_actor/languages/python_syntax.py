"""Whether a body is Python for the app's own interpreter."""

from __future__ import annotations

import json
from typing import Any

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.inside.python_syntax import judge
from foundry_implementation_actor.languages.port import Reading
from foundry_implementation_actor.languages.python_place import (
    INSIDE,
    OWN_VERSION,
    environment,
    import_roots,
    interpreter_version,
    remember_version,
)


def syntax(app: App, candidate: Candidate, run: Run) -> Reading:
    """Compile the body: here when the app's interpreter is of this version, else by that interpreter."""
    path = candidate.place.path
    if interpreter_version(app) == OWN_VERSION:
        return _reading(judge(candidate.content, path), path)
    completed = run(_command(app, candidate))
    said = _answer(completed)
    if isinstance(said, str):
        return Reading(cause=said)
    remember_version(app, (said["version"][0], said["version"][1]))
    return _reading(said, path)


def _command(app: App, candidate: Candidate) -> Command:
    script = str(INSIDE / "python_syntax.py")
    argv = (*app.interpreter, "-I", "-S", script, candidate.place.path)
    env = environment(app, import_roots(app))
    return Command(argv, app.root, env, app.probe_timeout_s, stdin=candidate.content)


def _answer(completed: Completed) -> dict[str, Any] | str:
    if completed.ended is Ended.NOT_FOUND:
        return f"the interpreter {completed.argv[0]} is not there"
    if not completed.ok:
        return f"the interpreter ended by {completed.ended} with {completed.code}: {completed.errors[-300:]}"
    try:
        said: dict[str, Any] = json.loads(completed.stdout)
    except ValueError:
        return "the interpreter did not answer"
    return said


def _reading(said: dict[str, Any], path: str) -> Reading:
    evidence = "; ".join(said["warnings"][:3])
    if not said["error"]:
        return Reading(evidence=evidence)
    where = f"{path}:{said['line']}" if said["line"] else path
    return Reading((Finding("syntax", where, said["error"]),), evidence=evidence)
