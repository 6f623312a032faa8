"""The end of a service: no answer lost, no new work, no process left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Service, served, write_cards

from foundry_implementation_actor.domain.error import ServeError
from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.host import listen

TASK = {"task_id": "T-1"}

# A whole process with a real signal: its `make` says on stderr that it has begun, then waits for a
# line on stdin (the test's leave to end), or for the end of its session.
PROGRAM = """
import json, pathlib, sys, threading
from papeete_actor_synchronous_messaging.actor import Actor
from foundry_implementation_actor.service.host import host, listen
from foundry_implementation_actor.service.mailbox import AsgiMailbox
from foundry_implementation_actor.system.journal import Journal

ended = threading.Event()

def make(actor, payload, from_, judged=None):
    print("begun", file=sys.stderr, flush=True)
    if payload["task_id"] == "session":
        assert ended.wait(60)
        return {"made": False, "because": "its session was ended"}
    if payload["task_id"] == "deaf":
        threading.Event().wait()
    sys.stdin.readline()
    return {"made": True}

mailbox = AsgiMailbox()
judge = type("Judge", (), {"name": "judge", "judge": lambda self, **_: {}})()
Actor.from_card(sys.argv[1], mailbox=mailbox, engines={"judge": judge}, actions={"make": make}, queries={})
host(mailbox, listen("127.0.0.1", 0), Journal(sink=lambda line, meta: print(line, flush=True)),
     end_sessions=ended.set, grace_s=float(sys.argv[2]), started={"note": "test"})
"""


class Running:
    """The process, its port, and the answers of the calls that were made in threads."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout
        self.started = json.loads(process.stdout.readline())
        self.service = Service(self.started["port"], [], Calls(), lambda: None)
        self.answers: list[Any] = []
        self._threads: list[threading.Thread] = []

    def begin(self, task_id: str) -> None:
        def ask() -> None:
            with contextlib.suppress(ConnectionError):
                self.answers.append(self.service.call("make", {"task_id": task_id}))

        self._threads.append(threading.Thread(target=ask))
        self._threads[-1].start()
        assert self.process.stderr
        assert self.process.stderr.readline() == "begun\n"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def next_event(self) -> str:
        assert self.process.stdout
        return str(json.loads(self.process.stdout.readline())["step"])

    def let_go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        code = self.process.wait(60)
        for thread in self._threads:
            thread.join(60)
        return code


@contextlib.contextmanager
def running(folder: Path, grace_s: float) -> Iterator[Running]:
    argv = [sys.executable, "-c", PROGRAM, str(write_cards(folder)), str(grace_s)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_in_flight_gets_its_answer_after_the_signal(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, grace_s=60) as actor:
        actor.begin("work")
        actor.signal(number)
        assert actor.next_event() == "actor-stopping"
        health = actor.service.send("GET", "/health")
        assert (health.status, health.json) == (503, {"status": "stopping"})
        refused = actor.service.call("make", TASK)
        assert (refused.status, refused.headers["retry-after"]) == (503, "30")
        assert "stopping" in refused.error
        actor.let_go()
        assert actor.end() == 0
        assert [(answer.status, answer.json) for answer in actor.answers] == [(200, {"made": True})]


def test_a_session_is_ended_when_the_grace_is_over_and_its_answer_is_sent(tmp_path: Path) -> None:
    with running(tmp_path, grace_s=0.01) as actor:
        actor.begin("session")
        actor.signal(signal.SIGTERM)
        assert [actor.next_event() for _ in range(2)] == ["actor-stopping", "sessions-ended"]
        assert actor.end() == 0
        assert [answer.json["made"] for answer in actor.answers] == [False]


def test_a_second_signal_ends_the_grace(tmp_path: Path) -> None:
    with running(tmp_path, grace_s=600) as actor:
        actor.begin("session")
        actor.signal(signal.SIGINT)
        assert actor.next_event() == "actor-stopping"
        actor.signal(signal.SIGINT)
        assert actor.end() == 0
        assert [answer.status for answer in actor.answers] == [200]


def test_an_idle_actor_ends_at_once_and_says_what_it_was(tmp_path: Path) -> None:
    with running(tmp_path, grace_s=600) as actor:
        assert actor.started["step"] == "actor-started"
        assert (actor.started["actor"], actor.started["note"]) == ("Thing-maker", "test")
        actor.signal(signal.SIGTERM)
        assert [actor.next_event() for _ in range(2)] == ["actor-stopping", "actor-stopped"]
        assert actor.end() == 0
        assert actor.process.stderr
        assert actor.process.stderr.read() == ""


def test_a_call_that_never_ends_cannot_keep_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundry_implementation_actor.service.server.LAST_ANSWERS_S", 0.05)
    never = threading.Event()
    arrived = threading.Event()

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        arrived.set()
        never.wait()
        return {"made": True}

    answers = []

    def ask(service: Service) -> None:
        answers.append(service.call("make", TASK))

    monkeypatch.setattr("foundry_implementation_actor.service.server.CLOSING_S", 0)
    with served(tmp_path, make=make, grace_s=0.01) as service:
        caller = threading.Thread(target=ask, args=(service,))
        caller.start()
        assert arrived.wait(30)
    caller.join(30)
    never.set()
    assert service.events("actor-stopped")[0]["calls_lost"] == 1
    assert [answer.status for answer in answers] == [503]
    assert answers[0].error == "the actor stopped before the answer was there; ask again"


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port} is already in use .*choose another with --port or PORT"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "nope.invalid", "a..b", "ä..b", "x" * 300, "::ffff:nope"])
def test_what_is_no_address_of_this_host_is_named_with_what_to_do(host: str) -> None:
    with pytest.raises(ServeError, match=f"^HOST '{re.escape(host)}' is no address of this host; correct HOST"):
        listen(host, 0)


def test_an_ipv6_address_can_be_listened_on() -> None:
    with listen("::1", 0) as listening:
        assert listening.getsockname()[0] == "::1"


def test_importing_the_package_imports_no_http_server() -> None:
    look = "import sys, foundry_implementation_actor; print([m for m in sys.modules if m in ('starlette', 'uvicorn')])"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout == "[]\n"
