"""One error for everything that is not an answer, with one table for what each code means outside.

A business refusal is an answer (`domain.run.Refused`), not an error. An `ActorError` says that the
caller asked wrongly, that the host is not fit, that a run was stopped, or that this is a bug.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Meaning(NamedTuple):
    """What a code is to a caller: the process exit code and the HTTP status."""

    exit_code: int
    http_status: int


class Code(StrEnum):
    """The closed list of error codes."""

    BAD_REQUEST = "bad-request"
    TOO_LARGE = "too-large"
    UNFIT = "unfit"
    STOPPED = "stopped"
    BUSY = "busy"
    BUG = "bug"
    INTERRUPTED = "interrupted"


EXIT_DELIVERED = 0
EXIT_REFUSED = 1

MEANINGS: dict[Code, Meaning] = {
    Code.BAD_REQUEST: Meaning(2, 400),
    Code.TOO_LARGE: Meaning(2, 413),
    Code.UNFIT: Meaning(3, 400),
    Code.STOPPED: Meaning(1, 400),
    Code.BUSY: Meaning(3, 503),
    Code.BUG: Meaning(4, 500),
    Code.INTERRUPTED: Meaning(130, 503),
}


class ActorError(Exception):
    """What went wrong, where, and what to do next.

    Args:
        code: which of the closed list this is.
        message: what is wrong, one sentence without a trailing full stop.
        hint: what to do next, an imperative; empty when the message says it.
        where: the place, as `file:line:column`, a key, a path or a URL; empty when there is none.
    """

    def __init__(self, code: Code, message: str, *, hint: str = "", where: str = "") -> None:
        self.code = code
        self.message = message
        self.hint = hint
        self.where = where
        super().__init__(str(self))

    def __str__(self) -> str:
        return f"{self.seen}; {self.hint}" if self.hint else self.seen

    @property
    def seen(self) -> str:
        """What is wrong and where, without what to do."""
        return f"{self.where}: {self.message}" if self.where else self.message

    @property
    def meaning(self) -> Meaning:
        """The exit code and HTTP status of this error."""
        return MEANINGS[self.code]


class ConfigError(ActorError, ValueError):
    """A sidecar that cannot be used to run; the message lists every error in it."""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(Code.BAD_REQUEST, message, hint=hint, where=where)


class SettingsError(ActorError, ValueError):
    """An environment variable with a value that cannot be used; the message names it."""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(Code.UNFIT, message, hint=hint, where=where)


class ServeError(ActorError, RuntimeError):
    """The service cannot start on this host."""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(Code.UNFIT, message, hint=hint, where=where)


class HandlerError(ActorError, RuntimeError):
    """The implement-task handler was given something that is no finished run."""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(Code.BUG, message, hint=hint, where=where)
