"""A server in the place of a registry, for answers that a real one cannot be made to give."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.demo.loopback import LoopbackServer
from support.packed import digest_of


class Question(NamedTuple):
    """What was asked: `line` is method and path, the names of headers are in lower case."""

    line: str
    headers: Mapping[str, str]
    body: bytes


class Said(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class StandIn(LoopbackServer):
    """Does what a registry does, except where `answers` says otherwise.

    `answers` has by method and kind, as in `PUT upload`, what is said the first time, the second time and so on, and
    the last of it for ever; the kinds are `manifest`, `blob`, `upload` and `else`. None is what a registry does. A
    function gets the handler, and the body is then still to be read. `asked` holds what was asked, `stored` what was
    sent.

    Args:
        certificate: the folder of a certificate of `make_certificate`; None is plain HTTP.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(_StandIn)
        self.asked: list[Question] = []
        self.stored: list[bytes] = []
        self.answers: dict[str, list[Said | Callable[[BaseHTTPRequestHandler], None] | None]] = {}
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def host(self) -> str:
        """Where it is, without a scheme."""
        return f"127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        """Where it is, with the scheme."""
        return f"{self._scheme}://{self.host}"

    @property
    def lines(self) -> list[str]:
        """What was asked, as method and path."""
        return [question.line for question in self.asked]


class _StandIn(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, *args: object) -> None:
        """What was asked is kept in `StandIn.asked`."""

    def do_GET(self) -> None:
        kinds = {"/manifests/": "manifest", "/uploads/": "upload", "/blobs/": "blob"}
        kind = next((kind for part, kind in kinds.items() if part in self.path), "else")
        answers = self.server.answers.get(f"{self.command} {kind}", [None])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        body = b"" if callable(answer) else self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Question(f"{self.command} {self.path}", headers, body))
        if callable(answer):
            self.close_connection = True
            answer(self)
        else:
            self._tell(answer or self._usual(body))

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - http.server's names

    def _usual(self, body: bytes) -> Said:
        if self.command == "POST":
            return Said(202, {"Location": f"{self.path}1"})
        if self.command == "PUT":
            self.server.stored.append(body)
            return Said(201)
        path = self.path.partition("?")[0]
        for content in self.server.stored:
            digest = digest_of(content)
            meant = b'"schemaVersion"' in content if "/manifests/" in path else path.endswith(f"/{digest}")
            if meant:
                return Said(200, {"Docker-Content-Digest": digest}, content)
        return Said(404)

    def _tell(self, said: Said) -> None:
        self.send_response(said.status)
        self.send_header("Content-Length", str(len(said.body)))
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said.body)
