"""Whatever bytes reach the proxy, from a session or from a host: a clean answer, never a hang or a traceback."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from typing import Self

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.egress.http import RefusedError, chunk_size, read_request, read_response
from foundry_implementation_actor.egress.proxy import HOST_NAME
from support.egress import PATIENCE_S, Origin, Way

SLOW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Babbler:
    """A host that says the same to everybody, whatever was asked, and closes."""

    def __init__(self) -> None:
        self.says = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._babble)

    @property
    def named(self) -> str:
        return f"{HOST_NAME}:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _babble(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE_S)
                connection.recv(65_536)
                connection.sendall(self.says)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin() as origin:
        yield origin


@pytest.fixture(scope="module")
def way(origin: Origin) -> Iterator[Way]:
    with Way(origin.named) as way:
        yield way


@pytest.fixture(scope="module")
def babbler() -> Iterator[Babbler]:
    with Babbler() as babbler:
        yield babbler


@pytest.fixture(scope="module")
def way_to_babbler(babbler: Babbler) -> Iterator[Way]:
    with Way(babbler.named) as way:
        yield way


def is_refusal(answered: bytes) -> bool:
    return bool(re.match(rb"HTTP/1\.1 [45][0-9]{2} [ -~]+\r\nContent-Type: text/plain", answered))


@SLOW
@given(content=st.binary(max_size=400))
@example(content=b"\n")
@example(content=b"\x00\r\n")
@example(content=b"\r\n\r\n")
@example(content=b"\x16\x03\x01\x02\x00\x01\x00")
@example(content=b"GET / HTTP/2\r\n\r\n")
@example(content=b"CONNECT \xff:1 HTTP/1.1\r\n\r\n")
def test_any_bytes_are_refused_cleanly(way: Way, content: bytes) -> None:
    answered = way.say(content)
    assert is_refusal(answered) or (answered, content) == (b"", b"")


WORDS = st.sampled_from(
    ["GET", "CONNECT", "POST", "get", "", " ", "\t", "http://", "https://", "//", "host.internal", "127.0.0.1", "[::1]",
     ":80", ":", "@", "%40", "/", "?", "#", "\0", "é", "*", " HTTP/1.1", " HTTP/1.0", " HTTP/9.9", "\r", "\n"],
)  # fmt: skip
HEADERS = st.sampled_from(
    ["Host: host.internal", "Host:", ": x", "A", " folded", "Content-Length: 5", "Content-Length: -1",
     "Content-Length: 5, 5", "Content-Length: 6", "Transfer-Encoding: chunked", "Transfer-Encoding: xchunked",
     "Transfer-Encoding : chunked", "Connection: close", "Connection: content-length", "Expect: 100-continue",
     "X: a\rb", "X: \0"],
)  # fmt: skip


@SLOW
@given(line=st.lists(WORDS, max_size=8), headers=st.lists(HEADERS, max_size=4), rest=st.binary(max_size=20))
def test_any_request_that_is_nearly_right_is_answered_or_refused(
    way: Way, line: list[str], headers: list[str], rest: bytes
) -> None:
    head = "\r\n".join(["".join(line), *headers, "", ""]).encode()
    answered = way.say(head + rest)
    assert is_refusal(answered)


@SLOW
@given(
    headers=st.lists(HEADERS, max_size=3),
    body=st.sampled_from(
        [b"", b"abcde", b"0\r\n\r\n", b"5\r\nabcde\r\n0\r\n\r\n", b"5\r\nabcdefg", b"-1\r\n", b"z\r\n"]
    ),
)
@example(headers=["Transfer-Encoding: chunked"], body=b"")
@example(headers=["Transfer-Encoding: chunked"], body=b"0\r\n")
@example(headers=["Content-Length: 5"], body=b"")
def test_any_body_for_a_listed_host_ends(way: Way, origin: Origin, headers: list[str], body: bytes) -> None:
    head = "\r\n".join([f"POST http://{origin.named}/ HTTP/1.1", *headers, "", ""]).encode()
    answered = way.say(head + body)
    assert answered.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 100 ")) or is_refusal(answered)


@pytest.mark.parametrize(
    "headers",
    ["Content-Length: 1\r\nContent-Length: 2", "Content-Length: 3\r\nTransfer-Encoding: chunked",
     "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
     "Content-Length: +3", "Content-Length: 0x3", "Transfer-Encoding\t: chunked", "X: a\n b", "X: a\r\n b"],
)  # fmt: skip
def test_a_body_whose_end_two_readers_would_see_differently_is_refused(way: Way, origin: Origin, headers: str) -> None:
    asked = len(origin.asked)
    assert is_refusal(way.say(f"POST http://{origin.named}/ HTTP/1.1\r\n{headers}\r\n\r\nabc".encode()))
    assert len(origin.asked) == asked


ANSWERS = st.lists(
    st.sampled_from(
        [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.0 204 \r\n", b"HTTP/1.1 101 x\r\n\r\n",
         b"\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
         b"Connection: close, content-length\r\n", b"5\r\nabcde\r\n", b"0\r\n\r\n", b"abcde", b"\n", b"X"],
    ),
    max_size=8,
).map(b"".join)  # fmt: skip


@SLOW
@given(says=st.binary(max_size=200) | ANSWERS)
@example(says=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9000)
def test_whatever_a_host_says_is_passed_on_whole_or_told_as_unreadable(
    way_to_babbler: Way, babbler: Babbler, says: bytes
) -> None:
    babbler.says = says
    answered = way_to_babbler.say(f"GET http://{babbler.named}/ HTTP/1.1\r\n\r\n".encode())
    assert re.match(rb"HTTP/1\.[01] [1-5][0-9]{2}", answered)


@settings(deadline=None)
@given(lines=st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_heads_of_any_bytes_are_read_or_refused(lines: list[bytes]) -> None:
    for attempt in (lambda: read_request(lines), lambda: read_response(lines, b"GET"), lambda: chunk_size(lines[0])):
        try:
            attempt()
        except RefusedError as refused:
            assert refused.said  # noqa: PT017 - both ends are right
