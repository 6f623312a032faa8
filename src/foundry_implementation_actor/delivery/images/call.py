"""One call of a builder's program, and what is said when it goes wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from foundry_implementation_actor.delivery.images.port import NotBuiltError
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop, run_contained

OUTPUT_LIMIT = 16 * 1024 * 1024
"""What one call may print, in bytes."""

_SHOWN_LINES = 6
_SHOWN_CHARACTERS = 2_000
# What a builder tells on its way, and the one struct that it prints whole.
_NOISE = re.compile(
    r"(\[\d+/\d+\] )?(STEP |COMMIT\b|-->|Getting image source|Copying (blob|config)|Writing manifest|Storing signatures"
    r"|Trying to pull|time=\S+ level=(debug|info|warning))"
)
_STRUCT = re.compile(r"copier\.request\{.*?\}(?=: copier)")
# As buildah and BuildKit put it when a line of a Dockerfile ended badly.
_RUN_FAILED = re.compile(r'at STEP "RUN |did not complete successfully')
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class BadEndError(ActorError):
    """A program that came to its own end, with an exit code that says no."""


def call(program: str, command: Command, stop: Stop | None, what: str, where: str) -> Completed:
    """Run a builder's program; `what` says what could not be done when it fails, `where` for which image.

    Raises:
        ActorError: UNFIT with the tail of what it said; INTERRUPTED when the actor is stopping.
    """
    done = run_contained(command, stop)
    if done.ok:
        return done
    code = Code.INTERRUPTED if done.ended is Ended.STOPPED else Code.UNFIT
    kind = BadEndError if done.ended is Ended.EXIT else ActorError
    raise kind(code, f"{what}: {why(done, program, command.timeout_s)}", hint=_hint(done), where=where)


def why(done: Completed, program: str, timeout_s: float) -> str:
    """Why a call of a builder's program did not succeed, in words."""
    if done.ended is Ended.TIMEOUT:
        return f"{program} did not end within {timeout_s:g} s"
    if done.ended is Ended.STOPPED:
        return "the actor is stopping"
    if done.ended is Ended.OUTPUT:
        return f"{program} printed more than {OUTPUT_LIMIT:,} bytes"
    lines = (*_told(done.text), *_told(done.errors))
    return " / ".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:] or f"exit {done.code}"


def _told(output: str) -> Iterator[str]:
    for line in map(str.strip, _CONTROL.sub("", output).splitlines()):
        if line and not _NOISE.match(line):
            yield _STRUCT.sub("…", line)


@contextlib.contextmanager
def not_built(network: bool) -> Iterator[None]:
    """Tell a commit that a builder did not take from a builder that could not work.

    Raises:
        NotBuiltError: the builder came to its own end.
    """
    try:
        yield
    except BadEndError as error:
        shut = not network and _RUN_FAILED.search(error.message)
        hint = "what a Dockerfile runs reaches no network unless BUILD_NETWORK=on" if shut else ""
        raise NotBuiltError(error.code, error.message, hint=hint, where=error.where) from error


def _hint(done: Completed) -> str:
    return "raise BUILD_TIMEOUT_S if it needs longer" if done.ended is Ended.TIMEOUT else ""
