"""The gate over HTTP on a listening socket, for the one client that knows its token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

_THREAD = "gate"
_GRACE_S = 1
_AT_ONCE = 32
MOST_SESSIONS = 64
"""Sessions of the protocol at once; each takes memory of the actor's, and a client needs one."""


_CLIENTS_CAN_MAKE_LOG = (
    "uvicorn.error", "mcp.server.runner", "mcp.server.streamable_http", "mcp.server.streamable_http_manager",
    "mcp.server._streamable_http_modern", "mcp.shared.jsonrpc_dispatcher",
)  # fmt: skip


def _is_not_of_a_gate(record: logging.LogRecord) -> bool:
    return record.threadName != _THREAD


class OverHttp:
    """Serves one MCP server in a thread of its own, from `serve` until `close`.

    Args:
        server: what answers.
        token: the bearer token without which nothing is answered.
    """

    def __init__(self, server: Server[Any], token: str) -> None:
        # A session that sends nonsense would otherwise fill the operator's records: it is told why, they are not.
        for name in _CLIENTS_CAN_MAKE_LOG:
            logging.getLogger(name).addFilter(_is_not_of_a_gate)
        self._app = _app(server, token)
        self._http: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def serve(self, listener: socket.socket) -> None:
        """Answer on a listening socket, which is closed at the end. To be called once."""
        settings = uvicorn.Config(
            self._app, http="h11", ws="none", loop="asyncio", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, limit_concurrency=_AT_ONCE, timeout_graceful_shutdown=_GRACE_S,
        )  # fmt: skip
        self._http = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._run, args=(self._http, listener), name=_THREAD)
        self._thread.start()

    def close(self) -> None:
        """Stop answering; returns when every call that was under way has ended."""
        if self._http is not None and self._thread is not None:
            self._http.should_exit = True
            self._thread.join()

    @staticmethod
    def _run(http: uvicorn.Server, listener: socket.socket) -> None:
        with listener:
            asyncio.run(http.serve(sockets=[listener]))


def _app(server: Server[Any], token: str) -> Starlette:
    # Without an end for idle ones: an agent may think for as long as its run lasts.
    sessions = StreamableHTTPSessionManager(server, session_idle_timeout=None, max_sessions=MOST_SESSIONS)
    expected = f"Bearer {token}".encode()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if hmac.compare_digest(given, expected):
            await sessions.handle_request(scope, receive, send)
        else:
            await PlainTextResponse("the token of this run is missing", 401)(scope, receive, send)

    return Starlette(routes=[Mount("/", app=guarded)], lifespan=lifespan)
