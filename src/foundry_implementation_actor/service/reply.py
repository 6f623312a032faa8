"""What goes back to a caller: JSON, always, and one word for the record of the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_S = 5.0

_RETRY_AFTER_S = "30"


@dataclass(frozen=True)
class Reply:
    """One answer: its HTTP status, its JSON body as bytes, and its outcome in one word.

    `unread` says that the request's body was not read to its end, so that the connection ends too.
    """

    status: int
    body: bytes
    outcome: str
    headers: Mapping[str, str] = field(default_factory=dict)
    unread: bool = False

    @property
    def error(self) -> str | None:
        """What the caller is told went wrong; None for an answer."""
        return None if self.status < 400 else str(json.loads(self.body)["error"])

    def response(self) -> Response:
        """The reply as Starlette sends it."""
        kind = _Unread if self.unread else Response
        return kind(self.body, self.status, dict(self.headers), media_type="application/json")


def answered(value: Any) -> Reply:
    """A completion object, as it is.

    Raises:
        ValueError: the object cannot be written as JSON (it holds NaN, or itself).
        TypeError: it holds something that JSON does not know.
    """
    return Reply(200, _dump(value), "answered")


def problem(status: int, outcome: str, message: str, *, unread: bool = False, **headers: str) -> Reply:
    """An error for the caller; header names are written with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if status == 503:
        named.setdefault("retry-after", _RETRY_AFTER_S)
    if unread:
        named["connection"] = "close"
    return Reply(status, _dump({"error": message}), outcome, named, unread)


class _Unread(Response):
    """A response to a request whose body is still on its way.

    It is sent at once. Then what comes is dropped, within bounds, because a connection that is closed
    under a caller who is still sending is reset, and the caller never reads why.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's three
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(DRAIN_S):
                await _drop_body(receive)
        except TimeoutError:
            pass  # the bound is the point; the connection ends below either way
        await send({"type": "http.response.body", "body": b""})


async def _drop_body(receive: Receive) -> None:
    dropped = 0
    while dropped < DRAIN_BYTES:
        message = await receive()
        dropped += len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _dump(value: Any) -> bytes:
    # A lone surrogate has no UTF-8; it is replaced, not the whole answer lost.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
