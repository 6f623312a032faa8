"""The calls that are being answered: each in a thread of its own, counted, until the service ends.

A call may take half an hour, so it is no work for a pool. The threads are daemons: one that never
comes back cannot keep a process alive that was told to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from foundry_implementation_actor.service.reply import Reply, problem

A = TypeVar("A")


class Calls:
    """Runs calls and knows how many are running. Used from one event loop only.

    Args:
        most: calls at once; above it a call is told to come back later.
    """

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False

    @property
    def running(self) -> int:
        """How many calls are being answered now."""
        return self._running

    async def answer(self, work: Callable[[A], Reply], asked: A) -> Reply:
        """Run `work(asked)`, which raises nothing, in a thread with this task's context variables.

        The work goes on to its end when the caller leaves or the waiting task is cancelled.
        """
        if self.stopping:
            return problem(503, "stopping", "the actor is stopping and takes no new work; ask again in a moment")
        if self._running >= self._most:
            return problem(503, "busy", f"{self._running} calls are already waiting here; ask again later")
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        self._running += 1
        self._idle.clear()
        context = copy_context()

        def run() -> None:
            value = context.run(work, asked)
            # The loop may be closed by now: the process is ending and nobody waits any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._settle, reply, value)

        Thread(target=run, name="call", daemon=True).start()
        return await reply

    async def wait_until_idle(self) -> None:
        """Return once no call is being answered."""
        await self._idle.wait()

    def _settle(self, reply: asyncio.Future[Reply], value: Reply) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()
        if not reply.cancelled():
            reply.set_result(value)
