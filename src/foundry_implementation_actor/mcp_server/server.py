"""The gate as a Model Context Protocol server over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotificationParams,
    ErrorData,
    JSONRPCError,
    ListToolsResult,
    PaginatedRequestParams,
    RequestId,
    TextContent,
)

from foundry_implementation_actor.gate.answer import Answer
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.trial import Notice
from foundry_implementation_actor.mcp_server.calls import call, in_words
from foundry_implementation_actor.mcp_server.tools import INSTRUCTIONS, TOOLS

NAME = "gate"
BEAT_S = 5.0
"""Seconds between two progress notes of a call that has nothing new to say."""

_Context = ServerRequestContext[dict[str, Any], Any]
_CallId = tuple[str | None, RequestId | None]


def serve(open_gate: Callable[[], Gate], version: str) -> None:
    """Answer one client on stdin and stdout until it goes away; a call that runs then is finished first."""
    anyio.run(_serve, gate_server(open_gate, version))


def gate_server(open_gate: Callable[[], Gate], version: str) -> Server[dict[str, Any]]:
    """The server; `open_gate` is called for each call, so that a changed `gate.yaml` counts at once."""

    async def list_tools(_: _Context, _page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: _Context, asked: CallToolRequestParams) -> CallToolResult:
        if asked.name not in {tool.name for tool in TOOLS}:
            return _result({"ok": False, "error": f"there is no tool {asked.name[:80]!r}", "code": "bad-request"})
        notes = _Notes(context)
        taken_back = threading.Event()
        calls = under_way.setdefault(_of_client(context, context.request_id), [])
        calls.append(taken_back)

        def work() -> Answer:
            return call(asked.name, asked.arguments or {}, lambda: open_gate().telling(notes.tell, taken_back.is_set))

        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(notes.beat)
                given = await anyio.to_thread.run_sync(work)
                beside.cancel_scope.cancel()
            return _result(given)
        finally:
            calls.remove(taken_back)
            if not calls:
                del under_way[_of_client(context, context.request_id)]

    async def take_back(context: _Context, cancelled: CancelledNotificationParams) -> None:
        for call_back in under_way.get(_of_client(context, cancelled.request_id), ()):
            call_back.set()

    # Of each call by its client and id; a client may send an id twice.
    under_way: dict[_CallId, list[threading.Event]] = {}
    server = Server[dict[str, Any]](
        NAME, version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    # The protocol's own cancelling does not reach a thread, and comes too when a client only goes away.
    server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, take_back)
    return server


def _of_client(context: _Context, request: RequestId | None) -> _CallId:
    """A request's id, which its client chose, with that client's session; over stdio there is one client only."""
    over_http = context.request
    return (over_http.headers.get(MCP_SESSION_ID_HEADER) if over_http is not None else None), request


class _Notes:
    """The progress notes of one call: each thing that the gate says, and a beat while it says nothing."""

    def __init__(self, context: _Context) -> None:
        self._context = context
        self._count = 0
        self._last = "starting"

    @property
    def tell(self) -> Notice:
        """What the gate calls, from its own thread."""
        return self._tell

    async def beat(self) -> None:
        while True:
            await anyio.sleep(BEAT_S)
            await self._send(self._last)

    def _tell(self, said: str) -> None:
        self._last = said
        # The client may be gone; what it asked for is done all the same.
        with contextlib.suppress(Exception, asyncio.CancelledError):
            anyio.from_thread.run(self._send, said)

    async def _send(self, said: str) -> None:
        self._count += 1
        await self._context.session.report_progress(self._count, None, said)


def _result(given: Answer) -> CallToolResult:
    text = TextContent(type="text", text=in_words(given))
    return CallToolResult(content=[text], structured_content=given, is_error=not given["ok"])


async def _serve(server: Server[dict[str, Any]]) -> None:
    async with stdio_server() as (reading, writing), anyio.create_task_group() as beside:
        inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def relay() -> None:
            """Answer a request that cannot be read, which the protocol's own server leaves without a word."""
            async with inward:
                async for item in reading:
                    unread = _unreadable(item) if isinstance(item, Exception) else None
                    await (writing.send(SessionMessage(unread)) if unread else inward.send(item))

        beside.start_soon(relay)
        await server.run(read, writing, server.create_initialization_options())
        beside.cancel_scope.cancel()


def _unreadable(error: Any) -> JSONRPCError | None:
    """The answer to a line that is no message; None when it holds no id that could be answered.

    Args:
        error: what the transport says of the line, a pydantic `ValidationError`.
    """
    try:
        first = error.errors()[0]
        sent = json.loads(first["input"])
        number, _ = sent["id"], sent["method"]
    except (AttributeError, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    if not isinstance(number, int | str) or isinstance(number, bool):
        return None
    said = "the call is no JSON in Unicode; perhaps a text of it holds half of a character (a lone surrogate)"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=INVALID_REQUEST, message=said))
