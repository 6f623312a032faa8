"""Something on the way to a server on loopback that cuts connections."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

_CHUNK = 65_536
_POLL_S = 0.1


class Forwarder:
    """Passes connections on to a server while it is open; `host` is where to reach it.

    `cuts` is how many connections are still to be cut, each once it has sent `after` bytes; -1 is every one.
    """

    def __init__(self, to: str, after: int) -> None:
        address, _, port = to.partition(":")
        self._to = (address, int(port))
        self._after = after
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_POLL_S)
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(30)
        self._listener.close()

    def _start(self, what: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=what, args=arguments, name="forwarder")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                self._start(self._pass, self._listener.accept()[0])

    def _pass(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._to) as far, contextlib.suppress(ConnectionError):
            sent = 0
            while not self._closing.is_set():
                for source in select.select((near, far), (), (), _POLL_S)[0]:
                    chunk = source.recv(_CHUNK)
                    if not chunk:
                        return
                    sent += len(chunk) if source is near else 0
                    if self.cuts and sent > self._after:
                        self.cuts -= self.cuts > 0
                        # So that the close ends the connection at once, as a broken line would.
                        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    (far if source is near else near).sendall(chunk)
