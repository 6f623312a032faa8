"""One call of a builder's program, and what is said when it goes wrong."""

from __future__ import annotations

import re

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop, run_contained

OUTPUT_LIMIT = 16 * 1024 * 1024
"""What one call may print, in bytes."""

_SHOWN_LINES = 6
_SHOWN_CHARACTERS = 2_000
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def call(program: str, command: Command, stop: Stop | None, what: str, where: str) -> Completed:
    """Run a builder's program; `what` says what could not be done when it fails, `where` for which image.

    Raises:
        ActorError: UNFIT with the tail of what it said; INTERRUPTED when the actor is stopping.
    """
    done = run_contained(command, stop)
    if done.ok:
        return done
    code = Code.INTERRUPTED if done.ended is Ended.STOPPED else Code.UNFIT
    raise ActorError(code, f"{what}: {why(done, program, command.timeout_s)}", hint=_hint(done), where=where)


def why(done: Completed, program: str, timeout_s: float) -> str:
    """Why a call of a builder's program did not succeed, in words."""
    if done.ended is Ended.TIMEOUT:
        return f"{program} did not end within {timeout_s:g} s"
    if done.ended is Ended.STOPPED:
        return "the actor is stopping"
    if done.ended is Ended.OUTPUT:
        return f"{program} printed more than {OUTPUT_LIMIT:,} bytes"
    lines = [line.strip() for line in _CONTROL.sub("", done.errors).splitlines() if line.strip()]
    return " / ".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:] or f"exit {done.code}"


def _hint(done: Completed) -> str:
    return "raise BUILD_TIMEOUT_S if it needs longer" if done.ended is Ended.TIMEOUT else ""
