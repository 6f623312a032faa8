"""Connections that end when they are to, whatever the other end does or leaves undone.

The time limit of `requests` is one of silence: a server that sends a byte now and then holds a request for ever, and
one that takes nothing holds up a stop.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from requests.adapters import HTTPAdapter
from requests.exceptions import Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection

_LOOK_EVERY_S = 0.1


class Line(HTTPAdapter):
    """What `requests` connects by."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        super().__init__()

    def get_connection_with_tls_context(self, *which: Any, **how: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*which, **how)
        pool.ConnectionCls = _Secure if pool.scheme == "https" else _Plain
        pool.conn_kw["line"] = self
        return pool

    def keep(self, connected: socket.socket) -> None:
        """Remember a connection: by a copy, since TLS takes the socket itself apart."""
        self._sockets.append(connected.dup())

    def close(self) -> None:
        super().close()
        for kept in self._sockets:
            kept.close()

    @contextlib.contextmanager
    def held(self, halt: Callable[[], None], within_s: float) -> Iterator[None]:
        """End every connection once `halt` raises or the time is up, and raise that here.

        Args:
            halt: called from another thread, ten times a second.
            within_s: seconds; infinite when only `halt` ends it.

        Raises:
            requests.exceptions.Timeout: the time is up.
        """
        raised: list[BaseException] = []
        over = threading.Event()
        until = time.monotonic() + within_s

        def watch() -> None:
            while not over.wait(_LOOK_EVERY_S):
                if not raised:
                    raised.extend(_reasons(halt, until))
                if raised:  # again and again, since one may just be made
                    self._cut()

        watcher = threading.Thread(target=watch, name="line")
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            # Also when nothing else did: a cut connection can look like the end of an answer.
            for error in raised:
                raise error

    def _cut(self) -> None:
        for kept in list(self._sockets):
            with contextlib.suppress(OSError):  # it is closed already
                kept.shutdown(socket.SHUT_RDWR)


def _reasons(halt: Callable[[], None], until: float) -> Iterator[BaseException]:
    """Why to end now, if at all."""
    try:
        halt()
    except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
        yield error
    if time.monotonic() > until:
        yield Timeout("no whole answer in time")


class _Plain(HTTPConnection):
    """A connection that its line knows of."""

    def __init__(self, *where: Any, line: Line, **how: Any) -> None:
        super().__init__(*where, **how)
        self._line = line

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        self._line.keep(connected)
        return connected


class _Secure(_Plain, HTTPSConnection):
    """The same with TLS."""
