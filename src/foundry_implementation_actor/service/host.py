"""One actor on one port until the end: what `serve` does once it has an actor."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from foundry_implementation_actor.domain.error import ServeError
from foundry_implementation_actor.service.app import Surface
from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.mailbox import AsgiMailbox
from foundry_implementation_actor.service.server import BACKLOG, Ending, Server
from foundry_implementation_actor.system.journal import Journal

_REASONS = {
    errno.EADDRINUSE: ("is already in use", "stop what listens there, or choose another with --port or PORT"),
    errno.EACCES: ("may not be used by this user", "choose one above 1023 with --port or PORT"),
}


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on this address; port 0 takes a free one.

    Raises:
        ServeError: naming the address, what is wrong with it, and what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # asked first: at what is no name at all, the call below leaves its socket open
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except UnicodeError as error:  # a text that cannot be a host's name
        raise _no_address(host) from error
    except OSError as error:
        number = error.errno or 0
        # The resolver's codes are below 0.
        if number < 0 or number == errno.EADDRNOTAVAIL:
            raise _no_address(host) from error
        reason, hint = _REASONS.get(number, (error.strerror or str(error), "correct HOST and PORT"))
        raise ServeError(f"port {port} {reason} (HOST={host})", hint=hint) from error


def _no_address(host: str) -> ServeError:
    return ServeError(f"HOST {host!r} is no address of this host", hint="correct HOST; 0.0.0.0 is every address")


def host(
    mailbox: AsgiMailbox,
    listening: socket.socket,
    journal: Journal,
    *,
    end_sessions: Callable[[], None],
    grace_s: float,
    started: Mapping[str, Any],
    lacks: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Serve the mailbox's actor on this socket until SIGTERM or SIGINT, and return when all is answered.

    Args:
        mailbox: the mailbox at which the actor has registered.
        listening: where connections come in; closed at the end.
        journal: takes every record of the service.
        end_sessions: ends the sessions of the runs in flight.
        grace_s: seconds that runs in flight get before their sessions are ended.
        started: what the `actor-started` record says beside the actor's name and its port.
        lacks: names what no run can do without; asked once, beside the serving, for it may ask other hosts.
    """
    calls = Calls()
    app = Surface(mailbox.actor, calls, journal).app()
    server = Server(app, Ending(calls, end_sessions, grace_s), journal)
    port = listening.getsockname()[1]

    def on_started() -> None:
        journal.event("actor-started", actor=mailbox.actor.name, port=port, **started)
        threading.Thread(target=_warn, args=(journal, lacks), name="not-fit", daemon=True).start()

    with listening:
        asyncio.run(server.run_on(listening, on_started))


def _warn(journal: Journal, lacks: Callable[[], Iterable[str]]) -> None:
    for text in lacks():
        journal.event("not-fit", level="warn", text=text)
