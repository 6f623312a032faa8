"""A threaded HTTP server on loopback that leaves nothing behind when it is closed."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_LOOPBACK = "127.0.0.1"
_POLL_S = 0.02


class LoopbackServer(ThreadingHTTPServer):
    """Serves `handler` on a free port of 127.0.0.1 while it is open as a context manager.

    Closing it ends every connection, sets `closing` for handlers that wait, and joins every thread.
    `errors` collects what handlers raised, apart from clients that went away.
    """

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.closing = threading.Event()
        self.errors: list[BaseException] = []
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((_LOOPBACK, 0), handler)
        self._acceptor = threading.Thread(target=self.serve_forever, args=(_POLL_S,), name="loopback-acceptor")

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, without a trailing slash."""
        return f"http://{_LOOPBACK}:{self.server_port}"

    def server_bind(self) -> None:
        # HTTPServer's own asks the resolver for a host name, which can block.
        socketserver.TCPServer.server_bind(self)
        self.server_name = _LOOPBACK
        self.server_port = self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        if isinstance(request, socket.socket):
            with self._lock:
                self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_where: object) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self.shutdown()
        self._acceptor.join()
        self._end_connections()
        self.server_close()

    def _end_connections(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its peer was quicker
