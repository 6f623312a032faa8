"""Sessions that turn against what the actor stands on: its supervisors, its mirror, its state, its records."""

from __future__ import annotations

import contextlib
import json
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError
from support.place import TOKEN, Place, shell, task, write
from support.processes import ends
from support.repos import SIDECAR
from support.serving import Serving

NEW = "backend/discount.py"
# The supervisor is the parent of the player, which is the parent of this shell.
SUPERVISOR = "SUP=$(awk '{print $4}' /proc/$PPID/stat);"
STRAY = "setsid sleep 600 & echo $! > {};"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def folders(place: Place) -> list[Path]:
    return [entry for entry in (place.state / "runs").iterdir() if entry.is_dir()]


@pytest.mark.parametrize("number", ["STOP", "KILL"])
@pytest.mark.parametrize("ending", ["say", "hang"])
def test_a_session_that_turns_against_its_supervisor_leaves_nothing_and_hangs_nothing(
    place: Place, tmp_path: Path, number: str, ending: str
) -> None:
    stray = tmp_path / "stray"
    lines = f"{SUPERVISOR} {STRAY.format(stray)} kill -{number} $SUP; {'sleep 600' if ending == 'hang' else ''}"
    engine = place.engine(write(NEW), shell(lines), {"say": "done"}, SESSION_TIMEOUT_S="2")
    with contextlib.suppress(ActorError):  # it may come to its end, or be stopped at its limit
        place.ask(engine)
    assert ends(int(stray.read_text()), 0)
    assert not folders(place)


def test_a_session_that_makes_three_thousand_levels_of_directories_is_cleared_up_after(place: Place) -> None:
    deep = "python3 -c \"import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\""
    place.run(write(NEW), shell(f"cd ~; {deep}"))
    assert not folders(place)
    assert not place.recorded("not-removed")


def test_a_session_that_spoils_the_mirror_spoils_it_for_nobody(place: Place) -> None:
    proxy = r"printf '[http]\n\tproxy = http://127.0.0.1:1\n'"
    place.run(shell(f"for m in {place.state}/mirrors/*.git; do : > $m/HEAD; {proxy} >> $m/config; done"))
    assert place.landed(write(NEW)).changes == {NEW: "A"}
    assert place.recorded("mirror-made-again")


def test_a_fetch_that_turns_against_its_supervisor_leaves_nothing_and_hangs_nothing(tmp_path: Path) -> None:
    stray = tmp_path / "stray"
    for number in ("STOP", "KILL"):
        fetch = json.dumps(["sh", "-c", f"{STRAY.format(stray)} kill -{number} $PPID; exec sleep 600"])
        entry = f"ground_in:\n  - {{name: n, answers: a, into: n.md, load: eager, fetch: {fetch}}}\n"
        with Place(tmp_path / number, sidecar=SIDECAR.replace("ground_in: []\n", entry)) as place:
            with pytest.raises(ActorError, match="ground_in 'n'"):
                place.run(write(NEW), settings={"FETCH_TIMEOUT_S": "1"})
            assert ends(int(stray.read_text()), 0)
            assert not folders(place)


def test_half_a_secret_of_a_fetch_is_told_to_nobody(tmp_path: Path) -> None:
    line = f"printf %s {TOKEN} >&2; head -c 1985 /dev/zero | tr '\\0' y >&2; exit 1"
    entry = (
        f"ground_in:\n  - {{name: n, answers: a, into: n.md, load: eager, fetch: {json.dumps(['sh', '-c', line])}}}\n"
    )
    with Place(tmp_path, sidecar=SIDECAR.replace("ground_in: []\n", entry)) as place:
        with pytest.raises(ActorError, match="ended with exit code 1") as raised:
            place.run(write(NEW))
        assert TOKEN[-8:] not in str(raised.value) + str(place.records)
        assert "yyy" in str(raised.value)


def test_the_id_of_a_task_that_is_a_secret_is_in_no_record(place: Place) -> None:
    place.run(write(NEW), task_id=TOKEN)
    assert TOKEN not in str(place.records)


def test_more_calls_than_the_host_has_descriptors_for_are_answered_in_words_and_leave_nothing(place: Place) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    environment = place.environment(write(NEW), MAX_SESSIONS="30")
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, before[1]))
    try:
        serving = Serving(place.folder, environment).__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    start = threading.Barrier(25)

    def ask(number: int) -> tuple[int, str]:
        start.wait()
        answer = serving.call("implement-task", task(task_id=f"T-{number}"))
        return answer.status, str(answer.body)

    try:
        with ThreadPoolExecutor(25) as pool:
            answers = list(pool.map(ask, range(25)))
        assert {status for status, _ in answers} <= {200, 400, 503}, answers
        assert all("oo many open files" in said or "open files" in said for status, said in answers if status == 400)
        assert not folders(place)
        assert serving.call("implement-task", task(task_id="T-LAST")).body["accepted"] is True
    finally:
        serving.__exit__()
