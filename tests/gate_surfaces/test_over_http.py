"""The gate over HTTP, asked by clients that follow no rule: strangers, two at once, too much, too many, too slow."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

from foundry_implementation_actor.gate import ledger
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.mcp_server.over_http import MOST_SESSIONS, OverHttp
from foundry_implementation_actor.mcp_server.server import gate_server
from support.apps import HONEST, OWN_TEST, SCAFFOLD, WAITING, python_app

TOKEN = "the-token-of-this-run"
CART = {"plugin": "shop", "class": "Cart"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}


Client = Callable[..., "Raw"]


class Raw:
    """One client without a library: what it says and hears, message by message."""

    def __init__(self, port: int, opened: ExitStack, token: str = TOKEN) -> None:
        self.port = port
        self._opened = opened
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def post(self, body: bytes) -> http.client.HTTPResponse:
        """The response to one request, its body not read yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self._opened.enter_context(contextlib.closing(connection))
        connection.request("POST", "/mcp", body, self._headers)
        return self._opened.enter_context(connection.getresponse())

    def tell(self, method: str, parameters: dict[str, Any], number: int | None = None) -> http.client.HTTPResponse:
        """Send one message; without a number it is a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        return self.post(json.dumps(message if number is None else {**message, "id": number}).encode())

    def greet(self) -> Self:
        """Open a session of the protocol."""
        response = self.tell("initialize", HELLO, 1)
        assert response.status == 200
        self._headers["Mcp-Session-Id"] = str(response.getheader("Mcp-Session-Id"))
        response.read()
        told = self.tell("notifications/initialized", {})
        assert (told.status, told.read()) == (202, b"")
        return self

    def silent(self) -> Self:
        """Close its connections; its session stays."""
        self._opened.close()
        return self

    def implement(self, number: int) -> http.client.HTTPResponse:
        """Begin a call that lands a class; its notes and its answer come in the response."""
        asked = {"name": "implement", "arguments": {**CART, "content": HONEST}, "_meta": {"progressToken": 1}}
        return self.tell("tools/call", asked, number)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    app = python_app(tmp_path / "app")
    (app / OWN_TEST).write_text(WAITING)
    return app


def serve(app: Path) -> tuple[OverHttp, int]:
    """The gate of an app, to be closed, and its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = OverHttp(gate_server(lambda: Gate(House.open(app)), "0"), TOKEN)
    port = int(listener.getsockname()[1])
    served.serve(listener)
    return served, port


@pytest.fixture
def client(app: Path) -> Iterator[Client]:
    """Makes clients of one gate."""
    served, port = serve(app)
    with ExitStack() as opened:
        opened.callback(served.close)
        with ExitStack() as connections:
            yield lambda **how: Raw(port, connections, **how)


def until(response: http.client.HTTPResponse, words: bytes) -> None:
    """Read events up to the one that holds these words."""
    assert any(words in line for line in response), "it ended before"


@pytest.mark.parametrize("own", [True, False])
def test_a_call_is_taken_back_by_the_client_that_made_it_and_by_no_other_with_the_same_number(
    app: Path, client: Client, *, own: bool
) -> None:
    first, second = client().greet(), client().greet()
    call = first.implement(7)
    until(call, b"own-test: shop.Cart")
    assert (first if own else second).tell("notifications/cancelled", {"requestId": 7}).status == 202
    # What was told before this answer has been done.
    assert b"result" in (first if own else second).tell("ping", {}, 8).read()
    (app / "go").touch()
    call.read()
    while not (entries := list(ledger.entries(app))):
        time.sleep(0.01)
    assert (entries[0]["landed"], (app / SCAFFOLD).read_text() == HONEST) == (not own, not own)


def test_two_clients_with_the_same_numbers_each_get_the_answer_to_their_own_call(app: Path, client: Client) -> None:
    first, second = client().greet(), client().greet()
    call = first.implement(7)
    until(call, b"own-test: shop.Cart")
    read = second.tell("tools/call", {"name": "read", "arguments": CART}, 7).read()
    assert b"To be written" in read
    (app / "go").touch()
    assert b"landed" in call.read()


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "é" * 64])
def test_a_forged_token_is_answered_nothing_of_the_gate(client: Client, token: str) -> None:
    response = client(token=token.encode().decode("latin-1")).tell("initialize", HELLO, 1)
    assert (response.status, response.getheader("Mcp-Session-Id")) == (401, None)
    assert b"shop" not in response.read()


SENSELESS = {
    "no JSON": (b"\xff\xfe{", {400}),
    "a list": (b"[]", {400}),
    "null": (b"null", {400}),
    "deep": (b"[" * 200_000, {400}),
    "5 MB": (b'"' + b"x" * 5_000_000 + b'"', {413}),
}


@pytest.mark.parametrize("case", SENSELESS)
def test_a_body_that_makes_no_sense_is_refused_and_the_next_is_answered(client: Client, case: str) -> None:
    body, statuses = SENSELESS[case]
    raw = client().greet()
    assert raw.post(body).status in statuses
    assert raw.tell("ping", {}, 9).status == 200


def test_more_sessions_than_any_client_needs_are_refused_and_those_that_are_open_go_on(client: Client) -> None:
    clients = [client().greet().silent() for _ in range(MOST_SESSIONS)]
    assert client().tell("initialize", HELLO, 1).status == 503
    assert clients[0].tell("ping", {}, 9).status == 200


def test_connections_that_say_nothing_and_bodies_that_never_come_do_not_hold_the_end_up(app: Path) -> None:
    served, port = serve(app)
    half = f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\n{{"
    with ExitStack() as opened:
        Raw(port, opened).greet()
        for said in (b"", b"POST /mcp HT", half.encode()):
            opened.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(said)
        started = time.monotonic()
        served.close()
        assert time.monotonic() - started < 5


def test_nonsense_writes_nothing_to_the_records_of_the_actor(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    raw = client().greet()
    assert [raw.post(body).status for body in (b"{", b"[]")] == [400, 400]
    assert raw.tell("tools/call", {"name": None}, 3).status == 200
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", raw.port)) as connection:
        connection.putrequest("POST", "/mcp", skip_host=True)
        connection.putheader("Content-Length", "-5")
        connection.endheaders()
        assert connection.getresponse().status == 400
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
