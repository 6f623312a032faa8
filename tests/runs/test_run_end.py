"""However an actor ends, nothing of its runs lives on, and the next one clears up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.workspace.checkout import run_folder, sweep
from support.place import BRANCH, Place, Started, shell, write
from support.processes import ends
from support.repos import SIDECAR

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Where a session says its process id, so that a test knows that it is at work."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def working(pipe: Path) -> dict[str, str]:
    return shell(f"setsid sleep 600 & echo $$ $! > {pipe}; sleep 600")


def pids(pipe: Path) -> list[int]:
    return [int(word) for word in pipe.read_text().split()]


def folders(place: Place) -> list[Path]:
    return [entry for entry in (place.state / "runs").iterdir() if entry.is_dir()]


def ended(actor: Started) -> tuple[int, str]:
    _, errors = actor.communicate(timeout=60)
    return actor.returncode, errors


def test_an_actor_that_is_killed_leaves_no_session_and_the_next_one_sweeps_its_folder(place: Place, pipe: Path) -> None:
    actor = place.command("implement", steps=(write(NEW), working(pipe)))
    sessions = pids(pipe)
    actor.kill()
    assert ended(actor)[0] == -signal.SIGKILL
    assert all(ends(pid) for pid in sessions)
    [left] = folders(place)
    assert BRANCH not in place.repo.branches()
    assert place.landed(write(NEW)).changes == {NEW: "A"}
    assert place.recorded("swept")[0]["folder"] == left.name
    assert not folders(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("door", ["implement", "assess"])
def test_a_command_that_is_interrupted_leaves_nothing(place: Place, pipe: Path, door: str, number: int) -> None:
    actor = place.command(door, steps=(write(NEW), working(pipe)))
    sessions = pids(pipe)
    actor.send_signal(number)
    code, errors = ended(actor)
    assert code == 130
    assert "Traceback" not in errors
    assert all(ends(pid) for pid in sessions)
    assert not folders(place)
    assert BRANCH not in place.repo.branches()


def test_a_command_that_is_interrupted_while_it_fetches_does_not_wait_for_the_tool(tmp_path: Path, pipe: Path) -> None:
    fetch = json.dumps(["sh", "-c", working(pipe)["shell"]])
    entry = f"ground_in:\n  - {{name: n, answers: a, into: n.md, load: eager, fetch: {fetch}}}\n"
    with Place(tmp_path / "place", sidecar=SIDECAR.replace("ground_in: []\n", entry)) as place:
        actor = place.command("implement")
        tools = pids(pipe)
        actor.send_signal(signal.SIGINT)
        assert ended(actor)[0] == 130
        assert all(ends(pid) for pid in tools)
        assert not folders(place)


def test_a_server_that_is_told_to_end_gives_its_run_the_grace_and_then_ends_it(place: Place, pipe: Path) -> None:
    actor = place.command("serve", "--port", "0", steps=(working(pipe),), SHUTDOWN_GRACE_S="1")
    assert actor.stdout is not None
    port = next(json.loads(line)["port"] for line in actor.stdout if "actor-started" in line)
    caller = place.call_later(port)
    sessions = pids(pipe)
    actor.terminate()
    code, _ = ended(actor)
    assert code == 0
    assert all(ends(pid) for pid in sessions)
    assert not folders(place)
    status, answer = caller()
    assert status == 503
    assert "the actor is stopping" in answer["error"]


def test_a_folder_in_use_is_not_swept_and_one_that_is_left_is(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert sweep(state, Journal()) == []
    with run_folder(state, "busy-", Journal()) as busy:
        (state / "runs/left").mkdir()
        (state / "runs/left/file").write_text("x")
        assert sweep(state, Journal()) == ["left"]
        assert busy.is_dir()
    assert not list((state / "runs").iterdir())


def test_a_link_among_the_run_folders_is_not_followed_when_they_are_swept(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "deep").mkdir(parents=True)
    (precious / "deep").chmod(0o500)
    (precious / "file").write_text("kept")
    state = tmp_path / "state"
    (state / "runs").mkdir(parents=True)
    (state / "runs/link").symlink_to(precious)
    (state / "runs/dangling").symlink_to("nowhere")
    (state / "runs/file").write_text("not a folder")
    sweep(state, Journal())
    assert sorted(entry.name for entry in precious.iterdir()) == ["deep", "file"]
    assert (precious / "deep").stat().st_mode & 0o777 == 0o500


def test_a_session_that_locks_its_own_directories_is_cleared_up_after(place: Place) -> None:
    work = "mkdir -p backend/a/b; echo x > backend/a/b/c; chmod 500 backend/a/b backend/a backend"
    assert place.landed(shell(f"{work}; mkdir -p ~/x/y; chmod 0 ~/x")).changes == {"backend/a/b/c": "A"}
    assert not folders(place)


def test_records_of_a_run_all_bear_its_ids(place: Place) -> None:
    engine = place.engine(write(NEW))
    place.ask(engine)
    runs: list[dict[str, Any]] = [record for record in place.records if record.get("step") != "swept"]
    assert len({record["correlation_id"] for record in runs}) == 1
    assert {record["task_id"] for record in runs} == {"TASK-1"}
    place.ask(engine, task_id="T2")
    assert len({record["correlation_id"] for record in place.records}) == 2
