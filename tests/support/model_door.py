"""A service of the model that says what a test wrote down, and a session's door to it where tokens cost dollars."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler
from typing import Any

from foundry_implementation_actor.demo.loopback import LoopbackServer
from foundry_implementation_actor.domain.price import Price, Prices
from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.meter import Meter
from foundry_implementation_actor.egress.model import Model, ModelDoor
from foundry_implementation_actor.egress.proxy import EgressProxy
from foundry_implementation_actor.system.journal import Journal
from support.egress import PATIENCE_S

_ROWS = {"tiny": (1, 1, 100, 10_000, 1_000_000), "dear": (3, 5, 300, 30_000, 3_000_000)}
PRICES = Prices({name: Price(*(1e6 * usd for usd in row)) for name, row in _ROWS.items()})
"""A dollar a token of input and output; what is cached has a digit of its own in the sum."""

TINY: dict[str, Any] = {"model": "tiny", "max_tokens": 50, "messages": [{"role": "user", "content": "a" * 300}]}
USAGE = {"input_tokens": 7, "output_tokens": 2}
CACHED = {
    "input_tokens": 3, "output_tokens": 2, "cache_creation_input_tokens": 9, "cache_read_input_tokens": 4,
    "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
}  # fmt: skip
JSON_HEAD, EVENTS_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n" % kind
    for kind in (b"application/json", b"text/event-stream; charset=utf-8")
)


def message(usage: object = USAGE, **fields: Any) -> bytes:
    """An answer that is one JSON object, its content long and deep."""
    content = [
        {"type": "text", "text": 'a "quoted" {text} ' * 5_000},
        {"type": "tool_use", "input": {"usage": {"a": []}}},
    ]
    return json.dumps({"id": "m", "model": "tiny", "content": content, "usage": usage, **fields}).encode()


def event(kind: str, **fields: Any) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def begun(usage: object = USAGE, model: str = "tiny") -> bytes:
    """How a stream begins."""
    return event("ping") + event("message_start", message={"id": "m", "model": model, "usage": usage})


def delta(text: str) -> bytes:
    """A piece of text in a stream."""
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def ended(**usage: Any) -> bytes:
    """How a stream ends."""
    return event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage) + event("message_stop")


STREAM = begun() + delta("word " * 10) + ended(output_tokens=20)


class Service(LoopbackServer):
    """Says the same bytes to each whole request, piece by piece; each piece but the first waits for `go`."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(_Service)
        self.pieces = pieces
        self.go = threading.Semaphore(0)
        self.asked = 0
        self.bodies: list[bytes] = []
        self.headers: dict[str, str] = {}


class _Service(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, *args: object) -> None:
        """What was asked is kept in `Service`."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"] or -1)
        body = self.rfile.read(length)
        self.server.bodies.append(body)
        if len(body) < length:
            return
        self.server.asked += 1
        self.server.headers = {name.lower(): value for name, value in self.headers.items()}
        for number, piece in enumerate(self.server.pieces):
            while number and not self.server.go.acquire(timeout=0.05) and not self.server.closing.is_set():
                continue
            self.wfile.write(piece)


class Door:
    """A session's door to a service, and what it does there."""

    def __init__(self, door: ModelDoor, port: int) -> None:
        self.door, self.port = door, port

    def ask(self, body: Any = TINY) -> tuple[int, bytes]:
        """One request and its whole answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            response = self.asked(connection, body)
            return response.status, response.read()
        finally:
            connection.close()

    def asked(self, connection: HTTPConnection, body: Any = TINY) -> HTTPResponse:
        """One request, and the head of its answer."""
        headers = {"x-api-key": self.door.token, "Accept-Encoding": "gzip, br"}
        connection.request("POST", "/v1/messages?beta=true", json.dumps(body).encode(), headers)
        return connection.getresponse()


@contextmanager
def door_to(service: Service, most_usd: float = 0.0) -> Iterator[Door]:
    """A session's door to a service, by the prices above."""
    meter = Meter(PRICES, most_usd)
    door = ModelDoor(Model(service.url, "ANTHROPIC_API_KEY", "the-login"), meter=meter)
    with EgressProxy(Allowed(), Journal(), model=door) as proxy:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        proxy.serve(listener)
        yield Door(door, port)
