"""The server's life: listening, and an end that loses no answer.

At the first SIGTERM or SIGINT the actor takes no new work and says so (503, on its health too), and
the runs in flight get their time. When it is over, or at a second signal, their sessions are ended,
and what they answer is still sent. Then the server closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.protocol import Connection
from foundry_implementation_actor.system.journal import CORRELATION, Journal, new_correlation_id

BACKLOG = 2048
LAST_ANSWERS_S = 10.0
CLOSING_S = 5


@dataclass
class Ending:
    """When and how a server ends. Used from one event loop only.

    Args:
        calls: the calls in flight.
        end_sessions: tells the sessions of the runs in flight to end; may take a moment.
        grace_s: seconds that the runs get before that.
    """

    calls: Calls
    end_sessions: Callable[[], None]
    grace_s: float
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _at_once: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        """Ask for the end; asked a second time, the grace is over."""
        (self._at_once if self._asked.is_set() else self._asked).set()
        self.calls.stopping = True

    async def wait(self, journal: Journal) -> None:
        """Return when the end was asked for and every answer that there will be is there."""
        await self._asked.wait()
        journal.event("actor-stopping", calls=self.calls.running, grace_s=self.grace_s)
        await _first_of(self.calls.wait_until_idle(), self._at_once.wait(), within_s=self.grace_s)
        if self.calls.running:
            journal.event("sessions-ended", level="warn", calls=self.calls.running)
            threading.Thread(target=self.end_sessions, name="end-sessions", daemon=True).start()
            await _first_of(self.calls.wait_until_idle(), within_s=LAST_ANSWERS_S)
        journal.event("actor-stopped", calls_lost=self.calls.running)


class Server(uvicorn.Server):
    """uvicorn on a listening socket, told to end by an `Ending` instead of by its own signal handlers."""

    def __init__(self, app: ASGIApp, ending: Ending, journal: Journal, protocol: type[Connection] = Connection) -> None:
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            interface="asgi3",
            backlog=BACKLOG,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSING_S,
        )
        super().__init__(config)
        self._ending = ending
        self._journal = journal
        self._on_started: Callable[[], None] = lambda: None

    async def run_on(self, listening: socket.socket, on_started: Callable[[], None]) -> None:
        """Serve on this socket until the end; `on_started` is called once connections are answered.

        Signals are taken when this runs in the main thread, and are its caller's business elsewhere.
        """
        self._on_started = on_started
        with _signals_to(self._ending.ask), _logged_in(self._journal):
            closing = asyncio.create_task(self._close_at_the_end())
            try:
                await self.serve([listening])
            finally:
                closing.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none: uvicorn would close the doors at once, and raise the signal again at its end."""
        yield

    async def _close_at_the_end(self) -> None:
        await self._ending.wait(self._journal)
        self.should_exit = True


class _ToJournal(logging.Handler):
    """Turns what uvicorn and asyncio have to complain about into events of ours, without tracebacks."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._journal.bound(correlation_id=CORRELATION.get() or new_correlation_id()).event(
            "http-server",
            level="warn" if record.levelno == logging.WARNING else "error",
            message=record.getMessage().strip(),
            error=f"{type(error).__name__}: {error}" if error else None,
        )


@contextlib.contextmanager
def _logged_in(journal: Journal) -> Iterator[None]:
    handler = _ToJournal(journal)
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate


@contextlib.contextmanager
def _signals_to(ask: Callable[[], None]) -> Iterator[None]:
    signals = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, ask)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def _first_of(*waits: Coroutine[Any, Any, Any], within_s: float) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
