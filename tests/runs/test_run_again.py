"""The same task asked again: who joins, what is kept, and what a restart knows."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from support.place import BRANCH, Place, shell, write

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def test_two_callers_of_one_task_at_once_get_the_answer_of_one_run(place: Place) -> None:
    gate = place.base / "gate"
    os.mkfifo(gate)
    engine = place.engine(shell(f"cat {gate} > backend/waited"))
    replies: list[dict[str, object]] = []
    callers = [threading.Thread(target=lambda: replies.append(place.ask(engine))) for _ in range(3)]
    started = threading.Event()
    place.on_record = lambda record: started.set() if record.get("step") == "session-tool" else None
    for caller in callers:
        caller.start()
    assert started.wait(30)
    gate.write_text("now")
    for caller in callers:
        caller.join()
    assert [reply["accepted"] for reply in replies] == [True, True, True]
    assert len(place.recorded("session", "start")) == 1
    assert len(place.recorded("branch-pushed")) == 1


def test_the_same_request_asked_again_gets_its_answer_without_a_second_run(place: Place) -> None:
    engine = place.engine(write(NEW))
    first, second = place.ask(engine), place.ask(engine)
    assert first == second == {"accepted": True, "branch": BRANCH, "images": []}
    assert len(place.recorded("session", "start")) == 1


def test_the_same_request_after_a_restart_is_answered_from_the_pushed_commit(place: Place) -> None:
    landed = place.landed(write(NEW))
    again = place.run(write(NEW, "something else\n"))
    assert again == {"accepted": True, "branch": BRANCH, "images": []}
    assert place.repo.branches()[BRANCH] == landed.commit
    assert len(place.recorded("session", "start")) == 1
    assert place.recorded("already-delivered")[0]["commit"] == landed.commit


def test_a_refusal_of_the_work_is_kept_and_one_of_the_host_is_not(place: Place) -> None:
    engine = place.engine(write("OUTSIDE.txt"))
    assert place.ask(engine) == place.ask(engine)
    assert len(place.recorded("session", "start")) == 1
    someone = place.repo.add_commit("impl/T2", {"backend/x": "x"})
    assert "did not make" in place.ask(engine, task_id="T2")["because"]
    place.repo.git("update-ref", "-d", "refs/heads/impl/T2", someone)
    assert "OUTSIDE.txt" in place.ask(engine, task_id="T2")["because"]


def test_an_actor_that_is_stopping_ends_the_session_and_tells_its_caller(place: Place) -> None:
    engine = place.engine(shell("sleep 600"), write(NEW))
    place.on_record = lambda record: engine.stop() if record.get("step") == "session-tool" else None
    with pytest.raises(ActorError, match="stopped because the actor is stopping") as raised:
        place.ask(engine)
    assert raised.value.code is Code.INTERRUPTED
    assert BRANCH not in place.repo.branches()
    assert not list((place.state / "runs").iterdir())
