"""What an answer of the model says of its tokens, read while it passes by and never held as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foundry_implementation_actor.domain.price import Usage, searches
from foundry_implementation_actor.egress.http import Header
from foundry_implementation_actor.egress.outline import Outline

_LONGEST_LINE = 64 * 1024
# message > usage > iterations > one of them > its cache_creation
_DEPTH_OF_USAGE = 5
_WRITTEN = ("text", "thinking", "partial_json")


@dataclass
class Told:
    """What one answer has said so far.

    `written` is the length of what the model wrote, in bytes of UTF-8, as far as a stream has shown it. `whole` says
    that nothing is missing: what was put in is stated, and so is the final length of the output.
    """

    model: str = ""
    usage: Usage = field(default_factory=Usage)
    searches: int = 0
    written: int = 0
    knows_input: bool = False
    whole: bool = False

    def take(self, message: Mapping[str, Any], *, last: bool) -> None:
        """Take in a message, or what a stream says of one; `last` says that its output is final."""
        usage, model = message.get("usage"), message.get("model")
        self.model = self.model or (model if isinstance(model, str) else "")
        if not isinstance(usage, dict):
            return
        self.usage = self.usage.larger(Usage.stated(usage))
        self.searches = max(self.searches, searches(usage))
        self.knows_input |= isinstance(usage.get("input_tokens"), int)
        self.whole |= last and self.knows_input and isinstance(usage.get("output_tokens"), int)


def reader(headers: Sequence[Header], told: Told) -> Callable[[bytes], None]:
    """What takes the content of an answer with this head, and tells `told`; it understands no compression."""
    known = {name.lower(): value.lower() for name, value in headers}
    if known.get(b"content-encoding", b"identity") != b"identity":
        return _ignore
    streamed = known.get(b"content-type", b"").startswith(b"text/event-stream")
    return _Events(told).feed if streamed else _Message(told).feed


def _ignore(_: bytes) -> None:
    """Nothing is known of it."""


class _Message:
    """An answer that is one JSON object."""

    def __init__(self, told: Told) -> None:
        self._told, self._outline = told, Outline(_DEPTH_OF_USAGE)

    def feed(self, content: bytes) -> None:
        self._outline.feed(content)
        if self._outline.closed and not self._told.whole:
            self._told.take(self._outline.value() or {}, last=True)


class _Events:
    """An answer that is a stream of events, one line of JSON in each; a line of more than 64 KiB is passed over."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._line = b""
        self._too_long = False

    def feed(self, content: bytes) -> None:
        *ends, rest = content.split(b"\n")
        for end in ends:
            self._hold(end)
            if self._line.startswith(b"data:") and not self._too_long:
                self._event(self._line[5:])
            self._line, self._too_long = b"", False
        self._hold(rest)

    def _hold(self, part: bytes) -> None:
        self._too_long |= len(self._line) + len(part) > _LONGEST_LINE
        self._line = b"" if self._too_long else self._line + part

    def _event(self, text: bytes) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                self._told.take(event["message"], last=False)
            case "content_block_delta" if isinstance(event.get("delta"), dict):
                self._told.written += _length(event["delta"])
            case "message_delta":
                self._told.take(event, last=True)


def _length(delta: Mapping[str, Any]) -> int:
    texts = (delta.get(name) for name in _WRITTEN)
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
