"""The record of a run: one JSON object a line (CONTRACT 7), redacted and bounded.

A `Journal` is a value that is handed down; it carries the ids that every record bears. What it is given
should be whole: it hides secrets before it cuts, and half a secret is not recognised. The schema
is the contract: `{level, event: "step", step, phase, duration_ms, error}`,
`{level, event: "event", step, …}`, `{level, event: "result", cost_usd, input_tokens, output_tokens, cost_estimated}`,
each with `correlation_id` and, once known, `task_id`.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from foundry_implementation_actor.domain.event import clip, line
from foundry_implementation_actor.system.secrets import Redact, redactor

CORRELATION: ContextVar[str] = ContextVar("correlation_id", default="")
"""The W3C trace id of the request that is being answered; empty outside of one."""

Sink = Callable[[str, Mapping[str, str]], None]
"""Takes one finished line and its structured metadata."""

_LONGEST_ID = 256
_LOGGER = logging.getLogger("foundry_implementation_actor")


def to_logging(text: str, meta: Mapping[str, str]) -> None:
    """Hand a record to `logging`: the line as its message, the metadata as record attributes."""
    _LOGGER.info("%s", text, extra=dict(meta))


def new_correlation_id() -> str:
    """A fresh id in the form of a W3C trace id: 32 lower-case hex digits, not all zero."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Journal:
    """Where a run's records go. `redact` is applied to every text in every record."""

    sink: Sink = to_logging
    redact: Redact = field(default=redactor(()))
    correlation_id: str = ""
    task_id: str = ""

    def bound(self, *, task_id: str = "", correlation_id: str = "") -> Journal:
        """The same journal whose further records bear these ids.

        A task's id may be anything that a caller sent: it is redacted, and clipped to 256 bytes.
        """
        named = clip(self.redact(task_id), _LONGEST_ID) or self.task_id
        return replace(self, task_id=named, correlation_id=correlation_id or self.correlation_id)

    def hiding(self, secret: str) -> Journal:
        """The same journal, in whose further records one more secret is hidden."""
        known, further = self.redact, redactor((secret,))
        return replace(self, redact=lambda text: further(known(text)))

    @contextlib.contextmanager
    def step(self, name: str, **fields: Any) -> Iterator[None]:
        """Record the start and the end of a step, and the error when it ends with one."""
        started = time.monotonic()
        self._write("info", {"event": "step", "step": name, "phase": "start", **fields})
        try:
            yield
        except BaseException as error:
            text = str(error) or type(error).__name__
            self._end({"step": name, **fields}, "failed", started, error=text)
            raise
        self._end({"step": name, **fields}, "ok", started, error=None)

    def event(self, name: str, *, level: str = "info", **fields: Any) -> None:
        """Record that something happened."""
        self._write(level, {"event": "event", "step": name, **fields})

    def result(self, *, cost_usd: float, input_tokens: int, output_tokens: int, cost_estimated: bool = False) -> None:
        """Record what a session cost, and whether that rests on a guess."""
        costs = {"cost_usd": cost_usd, "input_tokens": input_tokens, "output_tokens": output_tokens}
        self._write("info", {"event": "result", **costs, "cost_estimated": cost_estimated})

    def transcript(self, record: Mapping[str, Any]) -> None:
        """Record one piece of a session's conversation; `record` names its own `event`."""
        self._write("info", record)

    def _end(self, step: Mapping[str, Any], phase: str, started: float, *, error: str | None) -> None:
        duration = round((time.monotonic() - started) * 1000)
        record = {"event": "step", **step, "phase": phase, "duration_ms": duration, "error": error}
        self._write("error" if error else "info", record)

    def _write(self, level: str, record: Mapping[str, Any]) -> None:
        meta = {"correlation_id": self.correlation_id or CORRELATION.get()}
        if self.task_id:
            meta["task_id"] = self.task_id
        self.sink(line({"level": level, **self.hidden(record), **meta}), meta)

    def hidden(self, value: Any) -> Any:
        """The same value, of JSON's kinds, with `redact` applied to every text in it, keys included."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.hidden(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hidden(item) for item in value]
        return value
