"""Many callers of one service at once. Sessions are scripted, and held by a pipe until the test lets them go."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Barrier

import pytest

from support.place import Place, Step, shell, task, write
from support.serving import Answer, Serving, read_answer

AT_ONCE = 2
CALLERS = 20


class Held:
    """Steps that say `+` when a session has begun, wait to be let go, and say `-`."""

    def __init__(self, folder: Path) -> None:
        self._said, self._go = folder / "said", folder / "go"
        for pipe in (self._said, self._go):
            os.mkfifo(pipe)
        # Open for both directions: opening waits for nobody, and the pipe outlives each writer.
        self._descriptors = [os.open(pipe, os.O_RDWR | os.O_CLOEXEC) for pipe in (self._said, self._go)]

    @property
    def step(self) -> Step:
        """The step, in front of a session's work."""
        return shell(
            f"printf + > {self._said}; dd bs=1 count=1 if={self._go} of=/dev/null status=none; printf - > {self._said}"
        )

    def hear(self) -> str:
        """The next word, as soon as it is said."""
        assert select.select([self._descriptors[0]], [], [], 60)[0], "no session said anything for a minute"
        return os.read(self._descriptors[0], 1).decode()

    def let_go(self, sessions: int = 1) -> None:
        """Let this many sessions go on."""
        os.write(self._descriptors[1], b"." * sessions)

    def close(self) -> None:
        """Give the pipes up."""
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    pipes = Held(tmp_path)
    yield pipes
    pipes.close()


@contextlib.contextmanager
def serving(folder: Path, held: Held) -> Iterator[tuple[Place, Serving]]:
    with Place(folder / "place", local=True) as place:
        environment = place.environment(held.step, write("backend/new.py"), MAX_SESSIONS=str(AT_ONCE))
        with Serving(place.folder, environment) as actor:
            yield place, actor


def test_twenty_callers_at_once_are_all_answered_two_sessions_at_a_time(tmp_path: Path, held: Held) -> None:
    together = Barrier(CALLERS)

    def call(number: int) -> Answer:
        together.wait()
        return actor.call("implement-task", task(task_id=f"TASK-{number}"))

    with ThreadPoolExecutor(CALLERS) as callers, serving(tmp_path, held) as (place, actor):
        calls = [callers.submit(call, number) for number in range(CALLERS)]
        said = "".join(held.hear() for _ in range(AT_ONCE))
        assert actor.health() == (200, {"status": "ok"})
        assert not any(waiting.done() for waiting in calls)
        held.let_go()
        while said.count("-") < CALLERS:
            said += held.hear()
            if said.endswith("+"):
                # One goes whenever one comes, so that all places are taken until the last has come.
                held.let_go(AT_ONCE if said.count("+") == CALLERS else 1)
        replies = [done.result() for done in as_completed(calls)]
        assert sorted(place.repo.branches()) == sorted(["main", *(f"impl/TASK-{n}" for n in range(CALLERS))])
    assert [reply.status for reply in replies] == [200] * CALLERS
    assert [reply.body["accepted"] for reply in replies] == [True] * CALLERS
    assert max(said[:end].count("+") - said[:end].count("-") for end in range(len(said) + 1)) == AT_ONCE
    phases = [record["phase"] for record in actor.recorded("session")]
    inside = [phases[:end].count("start") - phases[:end].count("ok") for end in range(len(phases) + 1)]
    assert (phases.count("ok"), max(inside)) == (CALLERS, AT_ONCE)


def test_the_same_request_twice_at_once_is_one_session(tmp_path: Path, held: Held) -> None:
    with ThreadPoolExecutor(2) as callers, serving(tmp_path, held) as (_, actor):
        calls = [callers.submit(actor.call, "implement-task", task()) for _ in range(2)]
        assert held.hear() == "+"
        held.let_go(2)
        replies = [call.result() for call in calls]
    assert replies == [(200, {"accepted": True, "branch": "impl/TASK-1", "images": []})] * 2
    assert len(actor.recorded("session", "start")) == 1


def test_a_caller_that_gives_up_and_asks_again_gets_the_result_of_the_same_session(tmp_path: Path, held: Held) -> None:
    with serving(tmp_path, held) as (_, actor):
        with contextlib.closing(actor.connect()) as impatient:
            actor.send(impatient, "implement-task", task())
            assert held.hear() == "+"
        with contextlib.closing(actor.connect()) as again:
            actor.send(again, "implement-task", task())
            held.let_go(2)
            reply = read_answer(again)
        late = actor.call("implement-task", task())
    assert reply == late == (200, {"accepted": True, "branch": "impl/TASK-1", "images": []})
    assert len(actor.recorded("session", "start")) == 1
