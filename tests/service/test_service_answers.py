"""What a door answers when the actor raises, under whose trace id, and when many ask at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from papeete_actor_synchronous_messaging.engine import EngineError
from served import SECRET, Service, served

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.journal import CORRELATION

TASK = {"task_id": "T-1"}


def judge(prompt: str) -> Any:
    """Does what the task id in the prompt says."""
    asked = json.loads(prompt.split("\n", 2)[2])["payload"]["task_id"]
    if asked in [code.value for code in Code]:
        raise ActorError(Code(asked), f"it was asked for with {SECRET}", hint="ask for something else")
    if asked == "engine":
        raise EngineError(f"no engine today, {SECRET}")
    if asked.startswith("engine "):
        raise EngineError("the run says no") from ActorError(Code(asked.removeprefix("engine ")), "no")
    if asked == "exit":
        raise SystemExit(3)
    if asked == "nan":
        return {"value": float("nan")}
    if asked == "surrogate":
        return {"value": "a\ud800b"}
    if asked == "mistake":
        raise ZeroDivisionError(f"with {SECRET}")
    return {"asked": asked}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("actor"), judge=judge) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh_records(service: Service) -> None:
    service.records.clear()


# --- what the actor raises -------------------------------------------------------------------------


@pytest.mark.parametrize("code", Code)
def test_an_actor_error_has_the_status_of_its_code(service: Service, code: Code) -> None:
    reply = service.call("judge", {"task_id": code.value})
    assert reply.status == ActorError(code, "").meaning.http_status
    assert reply.error == "it was asked for with ***; ask for something else"
    assert ("retry-after" in reply.headers) == (reply.status == 503)
    assert service.last_call()["outcome"] == code.value


def test_an_engine_that_fails_is_a_400(service: Service) -> None:
    reply = service.call("judge", {"task_id": "engine"})
    assert reply.status == 400
    assert "no engine today, ***" in reply.error


@pytest.mark.parametrize(
    ("code", "status"),
    [("unfit", 400), ("stopped", 400), ("bug", 400), ("too-large", 413), ("busy", 503), ("interrupted", 503)],
)
def test_an_engine_that_says_to_ask_otherwise_or_again_is_heard(service: Service, code: str, status: int) -> None:
    reply = service.call("judge", {"task_id": f"engine {code}"})
    assert reply.status == status
    assert "the run says no" in reply.error
    assert service.last_call()["outcome"] == code


@pytest.mark.parametrize("asked", ["mistake", "exit", "nan"])
def test_a_bug_is_an_internal_error_whose_detail_is_in_the_log_only(service: Service, asked: str) -> None:
    reply = service.call("judge", {"task_id": asked})
    assert reply.status == 500
    assert reply.error.startswith("internal error")
    [detail] = service.events("internal-error")
    assert detail["error"].startswith(("ZeroDivisionError: with ***", "SystemExit: 3", "ValueError: Out of range"))
    assert detail["correlation_id"] == service.last_call()["correlation_id"]
    assert detail["task_id"] == asked


def test_half_a_surrogate_pair_in_an_answer_is_replaced(service: Service) -> None:
    assert service.call("judge", {"task_id": "surrogate"}).json == {"value": "a?b"}


def test_a_handler_that_fails_is_a_400(tmp_path: Any) -> None:
    def fails(*_: Any, **__: Any) -> dict[str, Any]:
        raise KeyError(SECRET)

    with served(tmp_path, make=fails) as broken:
        reply = broken.call("make", TASK)
    assert reply.status == 400
    assert "handler for 'make' failed: '***'" in reply.error


# --- one id for each request -----------------------------------------------------------------------

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_the_callers_trace_id_is_on_the_record(service: Service) -> None:
    service.call("make", TASK, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    record = service.last_call()
    assert record["correlation_id"] == TRACE
    assert record["task_id"] == "T-1"
    assert (record["door"], record["caller"], record["status"]) == ("make", "tester", 200)
    assert record["outcome"] == "answered"
    assert record["duration_ms"] >= 0


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        f"00-{TRACE}-00f067aa0ba902b7",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{TRACE}-00f067aa0ba902b7-01-more",
    ],
)
def test_a_malformed_trace_gets_a_new_id(service: Service, header: str) -> None:
    service.call("make", TASK, traceparent=header)
    fresh = service.last_call()["correlation_id"]
    assert len(fresh) == 32
    assert fresh != TRACE
    assert int(fresh, 16)


def test_a_trace_of_a_later_version_is_taken(service: Service) -> None:
    service.call("make", TASK, traceparent=f"01-{TRACE}-00f067aa0ba902b7-01-later")
    assert service.last_call()["correlation_id"] == TRACE


def test_two_trace_headers_give_one_new_id(service: Service) -> None:
    lines = "".join(f"traceparent: 00-{digit * 32}-00f067aa0ba902b7-01\r\n" for digit in "ab")
    service.raw(f"POST /make HTTP/1.1\r\nHost: x\r\n{lines}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    assert set(service.last_call()["correlation_id"]) not in ({"a"}, {"b"})


def test_the_work_and_the_record_bear_the_same_id(tmp_path: Any) -> None:
    seen: list[str] = []

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        seen.append(CORRELATION.get())
        return {"made": True}

    with served(tmp_path, make=make) as service:
        for _ in range(3):
            service.call("make", TASK)
        recorded = [record["correlation_id"] for record in service.events("call")]
    assert seen == recorded
    assert len(set(seen)) == 3


@pytest.mark.parametrize(("path", "body"), [("/nothing", "{}"), ("/make", "[]"), ("/make", '{"from": 1}')])
def test_a_refused_call_is_recorded_under_the_callers_trace(service: Service, path: str, body: str) -> None:
    service.send("POST", path, body, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    assert service.last_call()["correlation_id"] == TRACE


def test_a_task_id_of_a_megabyte_does_not_make_a_record_of_one(service: Service) -> None:
    service.call("make", {"task_id": "x" * 1_000_000})
    assert len(json.dumps(service.last_call())) < 2_000


# --- many at once ----------------------------------------------------------------------------------


def test_twenty_calls_at_once_are_all_taken_while_health_answers(tmp_path: Any) -> None:
    arrived, go = threading.Semaphore(0), threading.Event()

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        arrived.release()
        assert go.wait(30)
        return {"made": True}

    with served(tmp_path, make=make) as service:
        statuses: list[int] = []
        callers = [
            threading.Thread(target=lambda: statuses.append(service.call("make", TASK).status)) for _ in range(20)
        ]
        for caller in callers:
            caller.start()
        assert all(arrived.acquire(timeout=30) for _ in callers)
        assert service.send("GET", "/health").json == {"status": "ok"}
        go.set()
        for caller in callers:
            caller.join(30)
        assert statuses == [200] * 20


def test_a_call_above_the_bound_is_told_to_come_back(tmp_path: Any) -> None:
    arrived, go = threading.Event(), threading.Event()

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        arrived.set()
        assert go.wait(30)
        return {"made": True}

    with served(tmp_path, make=make, most_calls=1) as service:
        first = threading.Thread(target=service.call, args=("make", TASK))
        first.start()
        assert arrived.wait(30)
        reply = service.call("make", TASK)
        go.set()
        first.join(30)
    assert (reply.status, reply.headers["retry-after"]) == (503, "30")
    assert "1 calls are already waiting" in reply.error


def test_a_caller_that_leaves_does_not_stop_the_work(tmp_path: Any) -> None:
    arrived, go, done = threading.Event(), threading.Event(), threading.Event()

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        arrived.set()
        assert go.wait(30)
        done.set()
        return {"made": True}

    with served(tmp_path, make=make) as service:
        body = json.dumps({"from": "me", "payload": TASK})
        with service.connect() as connection:
            connection.sendall(f"POST /make HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            assert arrived.wait(30)
        go.set()
        assert done.wait(30)
        assert service.call("look", TASK).status == 200
    assert [record["outcome"] for record in service.events("call")].count("answered") == 2
