"""The limit of a session's money is held at its door to the model: before a request, and while one is answered."""

from __future__ import annotations

import json
from http.client import HTTPConnection

from foundry_implementation_actor.domain.price import Cost
from support.egress import PATIENCE_S
from support.model_door import EVENTS_HEAD, JSON_HEAD, STREAM, TINY, Service, begun, delta, door_to, message


def refusal(answer: tuple[int, bytes]) -> tuple[int, str, str]:
    """An error as the service words it: its status, kind and message."""
    status, body = answer
    told = json.loads(body)
    assert told["type"] == "error"
    return status, told["error"]["type"], told["error"]["message"]


def test_when_nothing_is_left_no_request_is_passed_on() -> None:
    with Service(JSON_HEAD + message()) as service, door_to(service, most_usd=18) as door:
        assert [door.ask()[0], door.ask()[0]] == [200, 200]
        assert not door.door.meter.exhausted
        status, kind, said = refusal(door.ask())
        assert (status, kind, service.asked) == (402, "billing_error", 2)
        assert "used up its 18 US dollars (MAX_COST_USD)" in said
        assert door.door.meter.exhausted


def test_the_limit_is_held_while_an_answer_streams() -> None:
    """What was written is counted at four bytes a token, and what goes over is not passed on."""
    with Service(EVENTS_HEAD + begun(), delta("w" * 4096), delta("w" * 4096)) as service:
        with door_to(service, most_usd=1500) as door:
            connection = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
            response = door.asked(connection, TINY | {"max_tokens": 9_000})
            assert response.read(len(begun())) == begun()
            service.go.release()
            assert response.read(len(delta("w" * 4096))) == delta("w" * 4096)
            assert not door.door.meter.exhausted
            service.go.release()
            assert response.read() == b""
            connection.close()
            assert door.door.meter.exhausted
        assert door.door.meter.close().cost == Cost(7 + 2 * 1024, estimated=True)


def test_an_answer_that_was_read_to_its_end_is_passed_on_whatever_it_cost() -> None:
    with Service(EVENTS_HEAD + STREAM) as service, door_to(service, most_usd=8) as door:
        assert door.ask() == (200, STREAM)
        assert door.door.meter.exhausted


def test_requests_under_way_at_once_cannot_cost_more_than_is_left() -> None:
    with Service(EVENTS_HEAD + begun(), STREAM) as service, door_to(service, most_usd=57) as door:
        first = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
        answer = door.asked(first)
        answer.readline()
        status, kind, _ = refusal(door.ask())
        assert (status, kind, service.asked) == (503, "overloaded_error", 1)
        assert not door.door.meter.exhausted
        service.go.release(2)
        answer.read()
        first.close()
        assert door.ask()[0] == 200
    assert door.door.meter.close().cost == Cost(54, estimated=False)


def test_a_stream_under_way_when_its_session_is_over_counts_by_what_was_written_till_then() -> None:
    with Service(EVENTS_HEAD + begun() + delta("w" * 4096), STREAM) as service, door_to(service) as door:
        connection = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
        door.asked(connection, TINY | {"max_tokens": 9_000}).read(len(begun() + delta("w" * 4096)))
        assert door.door.meter.close().cost == Cost(7 + 1024, estimated=True)
        connection.close()


def test_a_session_that_is_over_asks_nothing_more() -> None:
    with Service(JSON_HEAD + message()) as service, door_to(service) as door:
        door.door.meter.close()
        assert refusal(door.ask())[0] == 403
    assert service.asked == 0


def test_what_is_refused_is_said_in_the_form_of_the_service() -> None:
    with Service() as service, door_to(service) as door:
        connection = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
        for path, headers, status, kind in (
            ("/v1/messages", {}, 401, "authentication_error"),
            ("/v1/messages/batches", {"x-api-key": door.door.token}, 403, "permission_error"),
            ("/v1/messages", {"x-api-key": door.door.token, "Content-Encoding": "gzip"}, 415, "invalid_request_error"),
        ):
            connection.request("POST", path, b"{}", headers)
            response = connection.getresponse()
            assert refusal((response.status, response.read()))[:2] == (status, kind)
    assert service.asked == 0
