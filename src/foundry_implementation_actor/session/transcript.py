"""A session's output as lines of bounded size, and its events as records of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.engines.port import (
    Init,
    Other,
    Result,
    Said,
    Spent,
    StreamEvent,
    ToolCall,
    ToolResult,
)

LINE_LIMIT = 8 * 1024 * 1024
"""The longest line of a session's output that is read whole, in bytes."""

_HEAD = 64 * 1024
_PROSE = 32 * 1024
_TOOL = 4 * 1024
_NOTE = 2 * 1024


class Line(NamedTuple):
    """One line without its end; `dropped` bytes of it were not kept."""

    content: bytes
    dropped: int = 0


class Lines:
    """Splits a stream into lines while holding at most `limit` bytes and one chunk.

    A line above `limit` keeps its first 64 KiB. LF and CRLF end a line.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._dropped = 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """The lines that this chunk completes."""
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._hold(part)
            yield self._take()
        self._hold(rest)

    def rest(self) -> Iterator[Line]:
        """What stands after the last line end, at most one line; to be asked once, at the end."""
        if self._size:
            yield self._take()

    def _hold(self, part: bytes) -> None:
        if self._dropped:
            self._dropped += len(part)
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            head = b"".join(self._parts)[: min(_HEAD, self._limit)]
            self._dropped = self._size - len(head)
            self._parts = [head]

    def _take(self) -> Line:
        line = Line(b"".join(self._parts).removesuffix(b"\r"), self._dropped)
        self._parts, self._size, self._dropped = [], 0, 0
        return line


def record(event: StreamEvent, redact: Callable[[str], str]) -> dict[str, Any]:  # noqa: C901, PLR0911 - one for each kind
    """The journal's record of one event, in the shape of `{event: "event", step, …}`.

    `redact` comes before clipping, so that no secret is cut in two and half of it kept. Prose is kept
    up to 32 KiB, what goes into and comes out of a tool up to 4 KiB each.
    """

    def cut(text: str, limit: int) -> str:
        return clip(redact(text), limit)

    match event:
        case Init():
            said = {"model": event.model, "tools": list(event.tools), "mcp_servers": list(event.mcp_servers)}
            return _named("session-start", permission_mode=event.permission_mode, **said)
        case Said(kind="text"):
            return _named("session-text", text=cut(event.text, _PROSE))
        case Said():
            return _named("session-thought", text=cut(event.text, _PROSE))
        case ToolCall():
            return _named("session-tool", tool=event.name, input=cut(event.given, _TOOL))
        case ToolResult():
            return _named("session-tool-result", is_error=event.is_error, text=cut(event.text, _TOOL))
        case Spent():
            return _named("session-usage", message=event.message, model=event.model, **event.usage._asdict())
        case Result():
            return _named("session-result", fault=event.fault, turns=event.turns, text=cut(event.text, _PROSE))
        case Other(kind="line-too-long"):
            # Its end was cut before and may be half a secret, so that only its beginning can be shown.
            return _named("session-note", kind=event.kind, text=redact(event.text)[:_NOTE])
        case Other():
            return _named("session-note", kind=event.kind, text=cut(event.text, _NOTE))


def _named(step: str, **fields: Any) -> dict[str, Any]:
    return {"event": "event", "step": step, **fields}
