"""What reaches the server before it is a request: answered in JSON too, and not waited for without end."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """One connection of uvicorn's, with three differences.

    A request that breaks HTTP is answered with a JSON error. A request's head that does not arrive
    within `head_timeout_s` ends the connection. A caller that has closed its sending side, as some do
    after the request, still gets its answer, and is told when its body was cut short.
    """

    head_timeout_s = 30.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrowed as in uvicorn
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn returns None, which closes at once
        if self.cycle is None or self.cycle.response_complete:
            return False
        if self.cycle.more_body:
            self.send_400_response("the connection ended before the body was complete; check Content-Length")
            return False
        return True

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, and end the connection; uvicorn comes here with its own short text."""
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # Written past h11, whose state after a broken request allows different events at different times.
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_response(status, message))
        self.transport.close()

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_head()
        elif self._head_timer is None and self.timeout_keep_alive_task is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        begun = self.conn.trailing_data[0]
        if begun:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"no whole request came within {self.head_timeout_s:g} seconds")
        self.transport.close()


def _response(status: HTTPStatus, message: str) -> bytes:
    body = json.dumps({"error": message}).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    )
    return f"{head}connection: close\r\n\r\n".encode() + body
