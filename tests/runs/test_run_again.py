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


def test_an_earlier_request_is_answered_by_the_branch_that_was_remediated_since(place: Place) -> None:
    first = place.landed(write(NEW)).commit
    remedied = place.landed(write("backend/more.py"), remediation_context="more of it").commit
    assert place.landed(write(NEW, "something else\n")).commit == remedied
    (told,) = place.recorded("already-delivered")
    assert (told["commit"], told["asked_at"], told["merged"]) == (remedied, first, False)
    assert len(place.recorded("session", "start")) == 2


def test_a_request_whose_branch_was_merged_and_deleted_is_answered_from_the_default_branch(place: Place) -> None:
    first = place.landed(write(NEW)).commit
    merged = place.landed(write("backend/more.py"), remediation_context="more of it").commit
    place.repo.git("update-ref", "refs/heads/main", merged)
    place.repo.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    place.repo.add_commit("main", {"README.md": "later"}, f"later\n\nTask: TASK-10\n\nRequest: {'0' * 64}\n")
    assert place.run(write(NEW)) == {"accepted": True, "branch": BRANCH, "images": []}
    (told,) = place.recorded("already-delivered")
    assert (told["commit"], told["asked_at"], told["merged"]) == (merged, first, True)
    assert list(place.repo.branches()) == ["main"]
    assert len(place.recorded("session", "start")) == 2


def test_a_request_that_a_message_only_quotes_is_not_answered(place: Place) -> None:
    request = place.landed(write(NEW)).message.partition("Request: ")[2].partition("\n")[0]
    place.repo.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    place.repo.add_commit("main", {"README.md": "later"}, f"Undo it\n\nRequest: {request}\n\nwas wrong.\n")
    place.landed(write(NEW))
    assert len(place.recorded("session", "start")) == 2


def test_two_requests_of_one_task_at_once_are_worked_on_one_after_the_other(place: Place) -> None:
    gate = place.base / "gate"
    os.mkfifo(gate)
    line = os.open(gate, os.O_RDWR)
    engine = place.engine(shell(f"read go < {gate}; echo gone >> backend/waited"), MAX_SESSIONS="2")
    replies: dict[str, dict[str, object]] = {}

    def ask(title: str, **fields: str) -> threading.Thread:
        caller = threading.Thread(target=lambda: replies.update({title: place.ask(engine, title=title, **fields)}))
        caller.start()
        return caller

    tools = threading.Semaphore(0)
    place.on_record = lambda record: tools.release() if record.get("step") == "session-tool" else None
    first = ask("first")
    assert tools.acquire(timeout=30)
    second = ask("second", remediation_context="more of it")
    # The one that waits takes no place: another task is worked on meanwhile.
    other = ask("other", task_id="TASK-2")
    assert tools.acquire(timeout=30)
    assert len(place.recorded("session", "start")) == 2
    os.write(line, b"\n" * 3)  # one for each session, whenever it comes
    for caller in (first, second, other):
        caller.join()
    os.close(line)
    assert [reply["accepted"] for reply in replies.values()] == [True] * 3
    assert len(place.recorded("continues")) == 1


def test_a_stop_ends_the_wait_of_another_request_of_the_task(place: Place) -> None:
    engine = place.engine(shell("sleep 600"), write(NEW))
    errors: list[Code] = []

    def ask(title: str) -> threading.Thread:
        def asked() -> None:
            with pytest.raises(ActorError) as raised:
                place.ask(engine, title=title)
            errors.append(raised.value.code)

        caller = threading.Thread(target=asked)
        caller.start()
        return caller

    started = threading.Event()
    place.on_record = lambda record: started.set() if record.get("step") == "session-tool" else None
    callers = [ask("first")]
    assert started.wait(30)
    callers += [ask("second"), ask("third")]
    engine.stop()
    for caller in callers:
        caller.join()
    assert errors == [Code.INTERRUPTED] * 3
    assert len(place.recorded("session", "start")) == 1


def test_a_branch_whose_base_the_default_branch_lost_is_refused_in_these_terms(place: Place) -> None:
    place.landed(write(NEW))
    old = place.repo.sha("main")
    orphan = place.repo.git("commit-tree", "main^{tree}", "-m", "rewritten")
    place.repo.git("update-ref", "refs/heads/main", orphan)
    because = place.refused(write(NEW))
    assert f"the branch {BRANCH} goes on from {old[:12]}, which the default branch no longer has" in because
    assert "rename or delete the branch" in because
