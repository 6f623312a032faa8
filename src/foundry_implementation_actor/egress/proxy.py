"""The one way out of a session whose network is closed: a forward proxy that knows a list of hosts.

It runs in a thread of the actor and takes CONNECT and `http://` requests from listening sockets,
wherever those were made: a socket stays in the network namespace it was made in. What is not listed is
answered with 403 and recorded. Inside of a tunnel the proxy sees nothing: a listed host that serves
other people's sites too (a CDN) serves them to the session as well.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from foundry_implementation_actor.egress.allowed import Allowed, Target
from foundry_implementation_actor.egress.exchange import Counted, Exchange, Onlooker, ended
from foundry_implementation_actor.egress.http import RefusedError, Request, read_request
from foundry_implementation_actor.egress.model import ModelDoor
from foundry_implementation_actor.egress.route import Routes, Upstream
from foundry_implementation_actor.egress.wire import Connection, read_head, say_and_leave
from foundry_implementation_actor.system.journal import Journal

HOST_NAME = "host.internal"
"""The name by which a session reaches a port of the actor's own host, where that is listed."""


@dataclass(frozen=True)
class Limits:
    """What one session gets.

    Connections at once; bytes of a head, seconds to send it; seconds in which nothing moves; how
    many different refused targets are recorded.
    """

    connections: int = 256
    head_bytes: int = 32 * 1024
    head_s: float = 30.0
    idle_s: float = 3600.0
    recorded: int = 100


class EgressProxy:
    """Serves the listeners that it is given until it is closed; a context manager.

    Args:
        allowed: what may be reached.
        journal: takes `egress-refused` once for each refused host and port, at most `limits.recorded`
            of them, and at the end `egress-end` with the counts of everything.
        upstream: the site's own proxies. A name that goes through one of them is resolved there.
        names: fixed addresses of names, which need not be public.
        limits: see `Limits`.
        model: who answers requests that name no host; nobody when it is None.
    """

    def __init__(
        self,
        allowed: Allowed,
        journal: Journal,
        upstream: Upstream = Upstream(),  # noqa: B008 - frozen
        names: Mapping[str, str] = {HOST_NAME: "127.0.0.1"},
        limits: Limits = Limits(),
        *,
        model: ModelDoor | None = None,
    ) -> None:
        self._allowed, self._limits, self._model = allowed, limits, model
        self._routes = Routes(allowed, names, upstream, limits.head_bytes)
        self._to_model = _to_model(model, upstream, limits.head_bytes)
        self._log = _Log(journal, limits.recorded)
        self._open = 0
        self._servers: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._log.broken)
        self._thread = threading.Thread(target=self._loop.run_forever, name="egress")
        self._thread.start()

    def serve(self, listener: socket.socket) -> None:
        """Take connections from a listening stream socket, which belongs to the proxy from now on."""
        asyncio.run_coroutine_threadsafe(self._serve(listener), self._loop).result()

    def close(self) -> None:
        """End every connection, listener and thread; may be called again.

        Waits for a look-up of a name that is under way: the system's resolver has a time limit of its own.
        """
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._log.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def _serve(self, listener: socket.socket) -> None:
        limit = self._limits.head_bytes
        self._servers.append(await asyncio.start_server(self._connected, sock=listener, limit=limit))

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        this = asyncio.current_task()
        while others := [task for task in asyncio.all_tasks() if task is not this]:
            await ended(*others)
        await asyncio.sleep(0)  # for the sockets, which the loop closes in its next round
        await self._loop.shutdown_default_executor()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of its own: the one that asyncio would make complains when it is cancelled.
        task = self._loop.create_task(self._converse(Connection.of(reader, writer)))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _converse(self, client: Connection) -> None:
        self._open += 1
        self._log.connections += 1
        try:
            self._check_room()
            while await self._serve_one(client):
                continue
        except RefusedError as refused:
            self._log.refused(refused)
            await say_and_leave(client, refused.answer())
        except (OSError, EOFError):
            pass  # one side went away, or nothing moved for too long
        finally:
            self._open -= 1
            client.end()

    def _check_room(self) -> None:
        if self._open > 2 * self._limits.connections:
            raise ConnectionAbortedError  # a refusal that nobody reads keeps a descriptor of the actor's too
        if self._open > self._limits.connections:
            raise RefusedError(503, f"this session has {self._limits.connections} connections open already")

    async def _serve_one(self, client: Connection) -> bool:
        """Serve one request; whether another may follow on this connection."""
        request = await self._request(client)
        onlooker = Onlooker()
        if self._model is not None and request.own:
            request, onlooker = self._model.logged_in(request), self._model.onlooker(request)
            way = await self._to_model.way_to(request)
        elif self._allowed.lists(request.target):
            way = await self._routes.way_to(request)
        else:
            said = f"{request.target} is not among the hosts that this session may reach"
            raise RefusedError(403, f"{said}; the operator can list it in SESSION_HOSTS", request.target)
        exchange = Exchange(client, way, self._log.counted, self._limits.head_bytes, onlooker)
        try:
            return await exchange.serve(request, self._limits.idle_s)
        finally:
            way.connection.end()

    async def _request(self, client: Connection) -> Request:
        async with asyncio.timeout(self._limits.head_s):
            first = await client.reader.readexactly(1)
        try:
            async with asyncio.timeout(self._limits.head_s):
                lines = await read_head(client.reader, self._limits.head_bytes, first)
                return read_request(lines, self._model.model.target if self._model else None)
        except TimeoutError as error:
            raise RefusedError(408, f"no whole request came in {self._limits.head_s:g} seconds") from error


def _to_model(model: ModelDoor | None, upstream: Upstream, head_bytes: int) -> Routes:
    """The routes to the model alone: the operator named it with its port, wherever it is."""
    target = model.model.target if model else None
    return Routes(Allowed().and_also(target.host, target.port) if target else Allowed(), {}, upstream, head_bytes)


@dataclass
class _Log:
    """What is recorded of one proxy: each refused target once, so that a flood does not fill the records."""

    journal: Journal
    most: int
    connections: int = 0
    refusals: int = 0
    counted: Counted = field(default_factory=Counted)
    _recorded: set[Target] = field(default_factory=set)

    def refused(self, refused: RefusedError) -> None:
        target = refused.target
        if target is None:
            return
        self.refusals += 1
        if target not in self._recorded and len(self._recorded) < self.most:
            self._recorded.add(target)
            named = {"host": target.host, "port": target.port, "because": refused.said}
            self.journal.event("egress-refused", level="warn", **named)

    def broken(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        self.journal.event("egress-broken", level="error", error=f"{context.get('message')}: {error!r}")

    def end(self) -> None:
        counted = {"bytes_out": self.counted.out, "bytes_back": self.counted.back}
        self.journal.event("egress-end", level="info", connections=self.connections, refused=self.refusals, **counted)
