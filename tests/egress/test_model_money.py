"""What asking the model costs is read off what passes the door, and guessed on the safe side where it cannot be."""

from __future__ import annotations

import gc
import gzip
import json
import socket
import tracemalloc
from http.client import HTTPConnection

import pytest

from foundry_implementation_actor.domain.price import Cost
from foundry_implementation_actor.egress.bill import Bill
from foundry_implementation_actor.egress.http import ModelRefusedError, read_response
from foundry_implementation_actor.egress.meter import Charge, Meter
from support.egress import PATIENCE_S
from support.model_door import (
    CACHED,
    EVENTS_HEAD,
    JSON_HEAD,
    PRICES,
    STREAM,
    TINY,
    USAGE,
    Service,
    begun,
    delta,
    door_to,
    ended,
    event,
    message,
)  # fmt: skip


def cost_of(*pieces: bytes) -> Cost:
    """What one request costs whose service answers so."""
    with Service(*pieces) as service, door_to(service) as door:
        door.ask()
    return door.door.meter.close().cost


def answer(bill: Bill, *pieces: bytes, kind: bytes = b"text/event-stream") -> None:
    """Show a bill an answer, and that it is over."""
    bill.answered(read_response((b"HTTP/1.1 200 OK", b"Content-Type: " + kind), b"POST"))
    for piece in pieces:
        bill.heard(piece)
    bill.end()


# --- an answer that can be read --------------------------------------------------------------------


READ: dict[str, tuple[bytes, float]] = {
    "a message": (JSON_HEAD + message(), 9),
    "a message with what is cached": (JSON_HEAD + message(CACHED), 5 + 400 + 50_000 + 4_000_000),
    "a message of several passes": (JSON_HEAD + message({**USAGE, "iterations": [USAGE, USAGE, USAGE]}), 27),
    "a message with searches": (JSON_HEAD + message({**USAGE, "server_tool_use": {"web_search_requests": 3}}), 9.03),
    "a stream": (EVENTS_HEAD + STREAM, 27),
    "a stream with CRLF": (EVENTS_HEAD + STREAM.replace(b"\n", b"\r\n"), 27),
    "a stream that states its input at its end": (
        EVENTS_HEAD + begun({}) + ended(input_tokens=30, output_tokens=4),
        34,
    ),
    "a stream with a line that is too long": (
        EVENTS_HEAD + begun() + delta("x" * 70_000) + ended(output_tokens=20),
        27,
    ),
    "a stream with what is no event": (EVENTS_HEAD + b"data: [1\ndata: [1]\ndata: {}\ndata\n\n" + STREAM, 27),
    "an error": (b"HTTP/1.1 529 Overloaded\r\nConnection: close\r\n\r\n" + message(), 0),
}


@pytest.mark.parametrize("case", READ)
def test_an_answer_is_counted_by_what_it_states(case: str) -> None:
    said, usd = READ[case]
    cost = cost_of(said)
    assert cost.usd == pytest.approx(usd)
    assert not cost.estimated


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize(
    ("said", "kind", "usd"), [(message(CACHED), b"application/json", 4_050_405), (STREAM, b"text/event-stream", 27)]
)
def test_how_an_answer_is_cut_into_pieces_does_not_matter(said: bytes, kind: bytes, usd: float, size: int) -> None:
    meter = Meter(PRICES)
    answer(Bill(meter), *(said[at : at + size] for at in range(0, len(said), size)), kind=kind)
    assert meter.close().cost == Cost(usd, estimated=False)


def test_a_service_that_would_compress_is_asked_not_to() -> None:
    with Service(EVENTS_HEAD + STREAM) as service, door_to(service) as door:
        assert door.ask() == (200, STREAM)
    assert service.headers["accept-encoding"] == "identity"


def test_answers_with_the_same_id_each_count() -> None:
    with Service(JSON_HEAD + message()) as service, door_to(service) as door:
        for _ in range(3):
            door.ask()
    assert door.door.meter.close().cost == Cost(27, estimated=False)


# --- one that cannot -------------------------------------------------------------------------------


SENT = 10_000.0 * (len(json.dumps(TINY)) // 3)
UNREAD: dict[str, tuple[bytes, float]] = {
    "a stream that breaks off": (EVENTS_HEAD + begun() + delta("word"), 7 + 50),
    "a stream that ends with an error": (EVENTS_HEAD + begun() + event("error", error={}), 7 + 50),
    "a stream without its start": (EVENTS_HEAD + delta("word") + ended(output_tokens=20), SENT + 50),
    "a message that is cut off": (JSON_HEAD + message()[:-1], SENT + 50),
    "a message without a usage": (JSON_HEAD + message(None), SENT + 50),
    "a message with a key that stands twice": (JSON_HEAD + message()[:-1] + b', "usage": {}}', SENT + 50),
    "a message that holds too much": (JSON_HEAD + message(USAGE, more=list(range(20_000))), SENT + 50),
    "no JSON": (JSON_HEAD + b"[" * 100_000, SENT + 50),
    "nothing": (b"", SENT + 50),
    "one that is compressed all the same": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(message()),
        SENT + 50,
    ),
    "a model without a price": (JSON_HEAD + message(model="new"), 7 * 3 + 2 * 5),
}


@pytest.mark.parametrize("case", UNREAD)
def test_an_answer_that_cannot_be_read_counts_as_much_as_it_can_have_cost(case: str) -> None:
    said, usd = UNREAD[case]
    assert cost_of(said) == Cost(usd, estimated=True)


@pytest.mark.parametrize(
    ("body", "usd"),
    [
        (b'{"model": "tiny", "max_\\u0074okens": 9, "messages": ["\\"max_tokens\\": 1", {"max_tokens": 1}]}', 7 + 9),
        (b'{"messages": [{"model": "tiny"}], "max_tokens": 9, "model": "d\\u0065ar"}', 3 * 7 + 5 * 9),
        (b'{"model": "unknown", "max_tokens": 9, "temperature": 1}', 3 * 7 + 5 * 9),
    ],
)
def test_no_request_hides_what_it_may_cost(body: bytes, usd: float) -> None:
    meter = Meter(PRICES)
    bill = Bill(meter)
    bill.sent(body)
    bill.complete()
    answer(bill, begun(USAGE, ""))
    assert meter.close().cost == Cost(usd, estimated=True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"model": "tiny", "messages": [{"max_tokens": 1}]}', 400),
        (b'{"model": "tiny", "max_tokens": 9, "max_tokens": 1}', 400),
        (b'{"model": "tiny", "max_tokens": 9}{"model": "tiny", "max_tokens": 1}', 400),
        ('{"model": "tiny", "max_tokens": 9}'.encode("utf-16"), 400),
        (b'{"model": ["tiny"], "max_tokens": 9}', 400),
        (b'{"model": "tiny", "max_tokens": -9}', 400),
        (b'{"model": "tiny", "max_tokens": %b}' % (b"9" * 5_000), 400),
        (b'{"model": "tiny", "max_tokens": 9, "padding": "%b", %b}' % (b"x" * 300, b'"a": 0, ' * 9_000), 400),
        (b'{"model": "tiny", "max_tokens": 9, "speed": "fast"}', 403),
        (b'{"model": "tiny", "max_tokens": 9, "inference_geo": "us", "speed": null}', 403),
    ],
)
def test_a_request_whose_price_cannot_be_told_is_not_let_go(body: bytes, status: int) -> None:
    meter = Meter(PRICES)
    bill = Bill(meter)
    bill.sent(body)
    with pytest.raises(ModelRefusedError) as refused:
        bill.complete()
    assert refused.value.status == status
    bill.end()
    assert meter.close() == Charge()


def test_a_request_that_was_never_whole_costs_nothing() -> None:
    with Service() as service, door_to(service) as door:  # noqa: SIM117 - the session leaves first
        with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE_S) as session:
            head = f"POST /v1/messages HTTP/1.1\r\nx-api-key: {door.door.token}\r\nContent-Length: 100\r\n\r\n"
            session.sendall(head.encode() + b"{" * 99)
            session.shutdown(socket.SHUT_WR)
            assert b" 400 " in session.recv(65_536)
    assert door.door.meter.close().cost == Cost(0, estimated=False)


@pytest.mark.parametrize("end", ["0\r\n", "0\r\n\r\n"])
def test_a_refused_request_that_comes_in_chunks_is_not_whole_for_the_service(end: str) -> None:
    with Service() as service, door_to(service) as door:  # noqa: SIM117 - the session leaves first
        with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE_S) as session:
            head = f"POST /v1/messages HTTP/1.1\r\nx-api-key: {door.door.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
            session.sendall((head + "2\r\n{}\r\n" + end).encode())
            assert b" 400 " in session.recv(65_536)
    assert service.bodies == [b"2\r\n{}\r\n"]


def test_an_absurd_number_of_tokens_is_counted_as_a_billion() -> None:
    with Service(b"") as service, door_to(service) as door:
        door.ask(TINY | {"max_tokens": 10**4_000})
    assert door.door.meter.close().output_tokens == 10**9


def test_a_session_that_leaves_before_the_answer_has_come_pays_for_it() -> None:
    with Service(EVENTS_HEAD + begun(), STREAM) as service, door_to(service) as door:
        connection = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
        door.asked(connection).readline()
        connection.close()
    assert door.door.meter.close().cost == Cost(57, estimated=True)


# --- memory ----------------------------------------------------------------------------------------


def test_many_answers_and_large_ones_take_no_memory() -> None:
    meter = Meter(PRICES)
    large = b"x" * 65_536
    body = json.dumps(TINY).encode()
    tracemalloc.start()
    try:
        for number in range(1_000):
            bill = Bill(meter)
            bill.sent(body)
            bill.complete()
            answer(bill, begun(), delta(f"word {number}"), ended(output_tokens=20))
        for kind, opening in ((b"text/event-stream", b'data: {"'), (b"application/json", b'{"a": "'), (b"", b"[" * 9)):
            bill = Bill(meter)
            bill.sent(body[:-1] + b', "more": "')
            for _ in range(20):
                bill.sent(large)
            bill.sent(b'"}')
            bill.complete()
            answer(bill, opening, *(large for _ in range(20)), kind=kind)
        del bill
        gc.collect()
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (kept < 100_000, most < 1_000_000) == (True, True), (kept, most)
    assert meter.close().output_tokens == 20_000 + 3 * 50
