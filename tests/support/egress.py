"""Hosts on loopback for a session's way out, and a client that speaks to the proxy byte by byte."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from foundry_implementation_actor.demo.loopback import LoopbackServer
from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.proxy import HOST_NAME, EgressProxy, Limits
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.system.journal import Journal

PATIENCE_S = 10.0

# Of host.internal and localhost, signed by itself, good until 2120; it protects nothing.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1ob3N0Lmlu
dGVybmFsMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAYMRYwFAYD
VQQDDA1ob3N0LmludGVybmFsMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0gD2
gObv5i090E1SL6dTSeiRRNzPtE4p7D0XMOQUI1xr6/1SOevNKNwEHTRUPHac8arh
nGK5fbkrwUvWXBgFZaNUMFIwIwYDVR0RBBwwGoINaG9zdC5pbnRlcm5hbIIJbG9j
YWxob3N0MAwGA1UdEwQFMAMBAf8wHQYDVR0OBBYEFLOZd2lueG60EHvZY2sP6RLg
JNJ9MAoGCCqGSM49BAMCA0gAMEUCIQDtFUBJZ37ZvvIQBNr0ofruiAMy+H5MoVez
neV8ziPBbAIgXJqM/Y9RooKZArQmNH44lEP+ojqQgMP6wZPpqxVvxbU=
-----END CERTIFICATE-----
"""
_KEY = """\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggzsIdJEMdntw9Ppq
h4y1++/ZLD6R34FUC/bQpnYq6ZqhRANCAATSAPaA5u/mLT3QTVIvp1NJ6JFE3M+0
TinsPRcw5BQjXGvr/VI5680o3AQdNFQ8dpzxquGcYrl9uSvBS9ZcGAVl
"""


class Origin(LoopbackServer):
    """A host that tells what it was asked; `go` lets a stream at `/stream` go on after its first event.

    `certificate` is a folder for the files of its TLS; None is plain HTTP.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(_Origin)
        self.go = threading.Event()
        self.asked: list[dict[str, Any]] = []
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            pem = certificate / "host.pem"
            label = "PRIVATE KEY"
            pem.write_text(f"-----BEGIN {label}-----\n{_KEY}-----END {label}-----\n{CERTIFICATE}")
            context.load_cert_chain(pem)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def named(self) -> str:
        """`host.internal:PORT`, by which a session reaches it."""
        return f"{HOST_NAME}:{self.server_port}"


class _Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Origin

    def log_message(self, *args: object) -> None:
        """What was asked is kept in `Origin.asked`."""

    def do_GET(self) -> None:
        if self.path == "/early":  # answers before the body has come
            self._tell(b"")
            self.close_connection = True
            return
        body = self._body()
        if self.path == "/stream":
            self._stream()
        elif self.path == "/to-the-end":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"until the end")
        else:
            self._tell(body)

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - http.server's names

    def _tell(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = {"method": self.command, "path": self.path, "headers": headers, "body": body.decode("latin-1")}
        self.server.asked.append(asked)
        told = json.dumps(asked).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else told)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"7\r\nfirst\n\n\r\n")
        while not self.server.go.wait(0.05) and not self.server.closing.is_set():
            continue
        self.wfile.write(b"8;ext=1\r\nsecond\n\n\r\n0\r\nTrailer: x\r\n\r\n")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue
        return body


class SiteProxy(LoopbackServer):
    """A proxy of the site that wants a login; `asked` holds the request lines that it served."""

    LOGIN = "site-user:site-p%40ss"

    def __init__(self) -> None:
        super().__init__(_SiteProxy)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        """Its URL with the login in it."""
        return f"http://{self.LOGIN}@127.0.0.1:{self.server_port}"


class _SiteProxy(BaseHTTPRequestHandler):
    server: SiteProxy

    def log_message(self, *args: object) -> None:
        """What was asked is kept in `SiteProxy.asked`."""

    def do_CONNECT(self) -> None:
        if self._may_pass():
            self.send_response(200)
            self.end_headers()
            self._relay(self.path.rpartition(":")[2], b"")

    def do_GET(self) -> None:
        if self._may_pass():
            place, _, path = self.path.removeprefix("http://").partition("/")
            head = f"{self.command} /{path} HTTP/1.1\r\nHost: {self.headers['Host']}\r\nConnection: close\r\n\r\n"
            self._relay(place.rpartition(":")[2], head.encode())

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def _may_pass(self) -> bool:
        self.server.asked.append(self.requestline)
        wanted = "Basic " + base64.b64encode(b"site-user:site-p@ss").decode()
        if self.headers.get("Proxy-Authorization") == wanted:
            return True
        self.send_error(407)
        return False

    def _relay(self, port: str, first: bytes) -> None:
        """Every name leads to loopback here."""
        with socket.create_connection(("127.0.0.1", int(port))) as host:
            host.sendall(first)
            back = threading.Thread(target=_pump, args=(host, self.connection))
            back.start()
            _pump(self.connection, host)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65_536):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)


class Way:
    """A session's way out: a proxy with one listener, and the records it made."""

    def __init__(self, hosts: str, limits: Limits = Limits(), **site: str) -> None:  # noqa: B008 - frozen
        self.records: list[dict[str, Any]] = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        journal = Journal(sink=lambda line, _: self.records.append(json.loads(line)))
        self._proxy = EgressProxy(Allowed.read(hosts), journal, Upstream.read(site), limits=limits)
        self._proxy.serve(listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
        assert not self.recorded("egress-broken")

    def close(self) -> None:
        """End the proxy."""
        self._proxy.close()

    def also(self, listener: socket.socket) -> None:
        """Let the proxy serve one more listener."""
        self._proxy.serve(listener)

    def recorded(self, step: str) -> list[dict[str, Any]]:
        """The records of one kind."""
        return [record for record in self.records if record["step"] == step]

    @contextlib.contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """A connection to the proxy on which nothing takes longer than the tests' patience."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            yield connection

    def say(self, content: bytes) -> bytes:
        """Send bytes and no more; everything that comes back until the proxy closes."""
        with self.connection() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
            return rest_of(connection)

    def get(self, url: str, *headers: str) -> tuple[int, str]:
        """Ask for a URL on a connection of its own: status and body."""
        lines = [f"GET {url} HTTP/1.1", "Host: ignored.example", *headers, "Connection: close", "", ""]
        with self.connection() as connection:
            connection.sendall("\r\n".join(lines).encode("latin-1"))
            return read(connection)

    def connect(self, target: str) -> int:
        """Ask for a tunnel and leave: the status."""
        with self.connection() as connection:
            return tunnel(connection, target)[0]


def tunnel(connection: socket.socket, target: str) -> tuple[int, str]:
    """Ask for a tunnel on a connection: the status, and the words of a refusal."""
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("latin-1"))
    response = HTTPResponse(connection, method="CONNECT")
    response.begin()
    return response.status, "" if response.status == 200 else response.read().decode()


def read(connection: socket.socket, method: str = "GET") -> tuple[int, str]:
    """The next answer on a connection: status and body."""
    response = HTTPResponse(connection, method=method)
    response.begin()
    return response.status, response.read().decode()


def rest_of(connection: socket.socket) -> bytes:
    """Everything until the other side closes, however it does."""
    content = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            content += chunk
    return content
