"""How PHP is started for a PHP app, and how what it says is read."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Place

INSIDE = Path(__file__).parent / "inside" / "php"
# What a debugger or a cache of compiled code would add is in the way of a verdict.
PLAIN = ("-d", "opcache.enable_cli=0", "-d", "xdebug.mode=off", "-d", "memory_limit=1G")


def environment(app: App) -> dict[str, str]:
    """The app's environment, with a search path in any case."""
    return {"PATH": os.defpath, **app.environment}


def class_name(place: Place) -> str:
    """The class with its namespace, as `Foo::class` gives it."""
    return f"{place.module}\\{place.target.class_}" if place.module else place.target.class_


def ask(
    app: App, run: Run, script: str, question: dict[str, Any], timeout_s: float, *options: str, original: bool = False
) -> tuple[dict[str, Any] | None, Completed]:
    """Ask one of this package's PHP scripts; its answer (None when it gave none) and how it ended.

    The answer is the line that begins with a nonce, which the script takes off its stdin before it
    loads anything of the app: what the app prints is never taken for the answer.
    """
    nonce = secrets.token_hex(16)
    argv = (*app.interpreter, *options, str(INSIDE / script))
    stdin = json.dumps({"nonce": nonce, **question}).encode()
    completed = run(Command(argv, app.root, environment(app), timeout_s, stdin=stdin), original=original)
    for line in reversed(completed.text.splitlines()):
        if line.startswith(nonce):
            answer: dict[str, Any] = json.loads(line.removeprefix(nonce))
            return answer, completed
    return None, completed


def why_silent(completed: Completed, who: str) -> str:
    """Why a command gave no answer, as a cause."""
    if completed.ended is Ended.NOT_FOUND:
        return f"{completed.argv[0]} is not installed; on Debian: apt-get install php-cli"
    if completed.ended is Ended.TIMEOUT:
        return f"{who} did not end within {completed.seconds:.0f} s"
    if completed.ended is not Ended.EXIT:
        return f"{who} was ended ({completed.ended})"
    said = last_line(completed.errors or completed.text)
    return f"{who} ended with {completed.code} and no answer" + (f": {said}" if said else "")


def last_line(text: str) -> str:
    """The last line that says something, at most 300 characters of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
