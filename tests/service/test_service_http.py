"""Every way to call a door wrongly, and the right one, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Service, read_all, served

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.service.envelope import check_envelope

TASK = {"task_id": "T-1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("actor")) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh_records(service: Service) -> None:
    service.records.clear()


# --- the right way ---------------------------------------------------------------------------------


def test_an_action_is_answered_with_its_completion_object(service: Service) -> None:
    reply = service.call("make", TASK)
    assert (reply.status, reply.json) == (200, {"made": True})
    assert reply.headers["content-type"] == "application/json"


def test_a_query_gets_the_payload_and_the_caller_as_they_are(service: Service) -> None:
    payload: Any = {"task_id": 'é"\n☃', "parts": [{"n": 1.5}, None, [], "x"]}
    assert service.call("look", payload, caller="päpeete").json == {"seen": payload, "by": "päpeete"}


def test_keys_beside_from_and_payload_are_let_be(service: Service) -> None:
    assert service.send("POST", "/make", json.dumps({"from": "me", "payload": TASK, "verb": "request"})).status == 200


def test_a_business_refusal_is_an_answer(service: Service, tmp_path: Any) -> None:
    with served(tmp_path, make=lambda *_, **__: {"made": False, "because": "no"}) as refusing:
        reply = refusing.call("make", TASK)
    assert (reply.status, reply.json) == (200, {"made": False, "because": "no"})


def test_health_answers_get_and_head(service: Service) -> None:
    assert (service.send("GET", "/health").status, service.send("GET", "/health").json) == (200, {"status": "ok"})
    head = service.send("HEAD", "/health")
    assert (head.status, head.raw) == (200, b"")


def test_two_requests_on_one_connection_are_both_answered(service: Service) -> None:
    body = json.dumps({"from": "me", "payload": TASK})
    one = f"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    last = one.replace("Host: x", "Host: x\r\nConnection: close")
    assert service.raw((one + last).encode()).count(b"HTTP/1.1 200") == 2


def test_a_caller_that_closes_its_sending_side_still_gets_its_answer(service: Service) -> None:
    body = json.dumps({"from": "me", "payload": TASK})
    request = f"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    assert b'{"made": true}' in service.raw(request.encode(), close_sending=True)


def test_a_chunked_body_is_read(service: Service) -> None:
    body = json.dumps({"from": "me", "payload": TASK})
    chunks = "".join(f"{len(piece):x}\r\n{piece}\r\n" for piece in (body[:5], body[5:]))
    head = "POST /make HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert b'{"made": true}' in service.raw(f"{head}{chunks}0\r\n\r\n".encode())


# --- bodies ----------------------------------------------------------------------------------------

WRONG_BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "a list": (b"[1]", "not a list"),
    "a string": (b'"hello"', "not a string"),
    "null": (b"null", "not null"),
    "a number": (b"12", "not a number"),
    "true": (b"true", "not a boolean"),
    "no JSON": (b"{'from': 1}", "not JSON: Expecting property name"),
    "cut short": (b'{"from": "me", "pay', "not JSON"),
    "two values": (b"{}{}", "not JSON: Extra data"),
    "bad UTF-8": (b'{"from": "\xff"}', "not UTF-8 (byte 10)"),
    "UTF-16": ('{"from": "me"}'.encode("utf-16"), "not UTF-8"),
    "byte order mark": (b'\xef\xbb\xbf{"from": "me", "payload": {}}', "BOM"),
    "200,000 levels": (b"[" * 200_000 + b"]" * 200_000, "nested more than 64"),
    "200,000 open levels": (b'{"a":' * 200_000, "nested more than 64"),
    "500 levels": (b'{"from": "me", "payload": {"parts": ' + b"[" * 500 + b"]" * 500 + b"}}", "nested more than 64"),
    "no from": (b'{"payload": {"task_id": "T-1"}}', '"from" must be a non-empty string'),
    "from is null": (b'{"from": null, "payload": {}}', "not null"),
    "from is a number": (b'{"from": 7, "payload": {}}', "not a number"),
    "from is empty": (b'{"from": "", "payload": {}}', "not an empty string"),
    "from is blank": (b'{"from": "  ", "payload": {}}', '"from" must be a non-empty string'),
    "from is a list": (b'{"from": ["me"], "payload": {}}', "not a list"),
    "no payload": (b'{"from": "me"}', '"payload" must be an object, not null'),
    "payload is a list": (b'{"from": "me", "payload": []}', '"payload" must be an object, not a list'),
    "payload is a string": (b'{"from": "me", "payload": "x"}', "not a string"),
    "a key twice": (b'{"from": "me", "from": "you", "payload": {}}', "'from' more than once"),
    "NaN": (b'{"from": "me", "payload": {"parts": [NaN]}}', "NaN"),
    "minus Infinity": (b'{"from": "me", "payload": {"parts": [-Infinity]}}', "-Infinity"),
    "a number beyond floats": (b'{"from": "me", "payload": {"parts": [1e999]}}', "1e999"),
    "5,000 digits": (b'{"from": "me", "payload": {"parts": [' + b"9" * 5000 + b"]}}", "no number that can be used"),
    "undeclared field": (b'{"from": "me", "payload": {"task_id": "T", "x": 1}}', "'x' is not declared"),
    "missing field": (b'{"from": "me", "payload": {}}', "missing required field 'task_id'"),
    "wrong type": (b'{"from": "me", "payload": {"task_id": 5}}', "'task_id' must be string, got int"),
    "field of half a surrogate pair": (b'{"from": "me", "payload": {"task_id": "T", "\\ud800": 1}}', "is not declared"),
}


@pytest.mark.parametrize("case", WRONG_BODIES)
def test_a_wrong_body_is_refused_in_json_saying_what_is_wrong(service: Service, case: str) -> None:
    body, said = WRONG_BODIES[case]
    reply = service.send("POST", "/make", body)
    assert reply.status == 400
    assert reply.headers["content-type"] == "application/json"
    assert said in reply.error
    assert "Traceback" not in reply.error
    assert service.last_call()["status"] == 400
    assert service.send("GET", "/health").status == 200


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_an_envelope_or_a_bad_request(raw: bytes) -> None:
    try:
        check_envelope(raw)
    except ActorError as error:
        wrong = error
    else:
        return
    assert wrong.code is Code.BAD_REQUEST
    assert wrong.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_any_json_payload_arrives_as_it_was_sent(payload: dict[str, Any]) -> None:
    envelope = check_envelope(json.dumps({"from": "me", "payload": payload}).encode())
    assert envelope.payload == payload


def test_a_body_above_the_limit_is_refused_before_it_is_sent(service: Service) -> None:
    head = b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\nExpect: 100-continue\r\n\r\n"
    with service.connect() as connection:
        connection.sendall(head)
        answer = b""
        while b"larger than 2,097,152 bytes" not in answer:
            answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")  # and no "100 Continue" before it


def test_a_caller_that_sends_50_mb_reads_the_refusal_and_is_not_reset(service: Service) -> None:
    reply = service.send("POST", "/make", b" " * 50_000_000)
    assert reply.status == 413
    assert "larger than 2,097,152 bytes" in reply.error


def test_a_chunked_body_above_the_limit_is_refused(service: Service) -> None:
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    head = b"POST /make HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert service.raw(head + chunk * 40 + b"0\r\n\r\n").startswith(b"HTTP/1.1 413")


def test_a_body_of_exactly_the_limit_is_read(service: Service) -> None:
    body = json.dumps({"from": "me", "payload": TASK})
    assert service.send("POST", "/make", body.ljust(2 * 1024 * 1024)).status == 200


# --- broken HTTP -----------------------------------------------------------------------------------

BROKEN = {
    "Content-Length is no number": b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n{}",
    "Content-Length is negative": b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
    "Content-Length has 5,000 digits": b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: "
    + b"9" * 5000
    + b"\r\n\r\n",
    "two Content-Lengths": b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "no HTTP": b"hello there\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a bad chunk": b"POST /make HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a head of 1 MB": b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_http_is_refused_in_json_and_leaves_the_server_well(service: Service, case: str) -> None:
    try:
        answer = service.raw(BROKEN[case])
    except ConnectionResetError:
        assert "1 MB" in case  # more than is read is on its way; a reset may overtake the answer
    else:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        assert b"content-type: application/json" in head
        assert json.loads(body)["error"]
    assert service.send("GET", "/health").status == 200
    assert not any("Traceback" in json.dumps(record) for record in service.records)


def test_a_content_length_above_what_comes_is_refused_when_the_caller_closes(service: Service) -> None:
    request = b'POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{"from": "me"}'
    answer = service.raw(request, close_sending=True)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"check Content-Length" in answer


def test_a_content_length_below_what_comes_is_a_body_cut_short(service: Service) -> None:
    body = json.dumps({"from": "me", "payload": TASK}).encode()
    with service.connect() as connection:
        connection.sendall(b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n" + body + b"\r\n\r\n")
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 400") == 2  # the body cut short, and the rest that is no request
    assert b"not JSON" in answer


def test_a_body_that_stops_half_way_is_given_up(tmp_path: Any) -> None:
    with served(tmp_path, body_timeout_s=0.05) as hasty:
        answer = hasty.raw(b'POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{"from"')
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"did not arrive within 0.05 seconds" in answer
        assert hasty.last_call()["outcome"] == "timeout"


def test_a_head_that_stops_half_way_is_given_up(tmp_path: Any) -> None:
    with served(tmp_path, head_timeout_s=0.05) as hasty:
        assert hasty.raw(b"POST /make HTTP/1.1\r\nHost:").startswith(b"HTTP/1.1 408")
        assert hasty.raw(b"") == b""


def test_a_caller_that_goes_away_within_its_body_leaves_a_record(tmp_path: Any) -> None:
    with served(tmp_path) as service:
        with service.connect() as connection:
            connection.sendall(b"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
        assert service.send("GET", "/health").status == 200
    assert service.last_call()["outcome"] == "caller-left"


# --- paths and methods -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/nothing", "/make/", "/MAKE", "/make/x", "/%00", "/health/", "/..%2fmake"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_a_404_in_json(service: Service, path: str, method: str) -> None:
    reply = service.send(method, path, b"{}" if method == "POST" else None)
    assert reply.status == 404
    assert "POST to /make or /look or /judge" in reply.error
    assert service.last_call()["outcome"] == "not-found"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_another_method_on_a_door_is_a_405_in_json(service: Service, method: str) -> None:
    reply = service.send(method, "/make", b"{}" if method == "PUT" else None)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert f"{method} is not understood at /make" in reply.error


def test_head_on_a_door_is_a_405_without_a_body(service: Service) -> None:
    reply = service.send("HEAD", "/make")
    assert (reply.status, reply.raw) == (405, b"")


def test_a_post_to_health_is_a_405(service: Service) -> None:
    reply = service.send("POST", "/health", b"{}")
    assert (reply.status, sorted(reply.headers["allow"].split(", "))) == (405, ["GET", "HEAD"])


def test_a_request_to_become_a_websocket_is_refused(service: Service) -> None:
    reply = service.send("GET", "/make", Connection="Upgrade", Upgrade="websocket")
    assert reply.status == 405
