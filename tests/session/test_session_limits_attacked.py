"""What got past a limit once: endless numbers, processes that nobody collects, memory in files, many files."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.run import Cause
from support.sessions import BUDGET, Stage

ENDLESS = int("9" * 4300)  # the longest that Python turns into a text
UNCOLLECTED = "for _ in range(200):\n    if os.fork() == 0: os._exit(0)"
IN_MEMORY = "f = os.memfd_create('x')\nfor _ in range(150): os.write(f, b'x' * 1_000_000)"
DELETED = (
    "f = os.open(f'/dev/shm/{os.getpid()}', os.O_RDWR | os.O_CREAT)\nos.unlink(f'/dev/shm/{os.getpid()}')\n"
    "for _ in range(150): os.write(f, b'x' * 1_000_000)"
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def program(stage: Stage, text: str) -> dict[str, str]:
    """A step that runs a piece of Python and then waits."""
    place = stage.base / "program.py"
    place.write_text(f"import os, signal\n{text}\nsignal.pause()\n")
    return {"shell": f"exec {sys.executable} -I -S {place}"}


def test_processes_that_have_ended_and_are_never_collected_count(stage: Stage) -> None:
    end = stage.play(program(stage, UNCOLLECTED), budget=replace(BUDGET, processes=20))
    assert end.cause is Cause.PROCESSES


@pytest.mark.parametrize("text", [IN_MEMORY, DELETED])
def test_memory_that_lies_in_files_without_a_name_counts(stage: Stage, text: str) -> None:
    end = stage.play(program(stage, text), budget=replace(BUDGET, memory_bytes=90_000_000))
    assert end.cause is Cause.MEMORY


def test_a_file_in_memory_that_is_mapped_counts_once(stage: Stage) -> None:
    text = (
        "import mmap\nf = os.memfd_create('x')\nos.ftruncate(f, 60_000_000)\nm = mmap.mmap(f, 0)\n"
        "for _ in range(60): m.write(b'x' * 1_000_000)\nsignal.alarm(1)"
    )
    end = stage.play(program(stage, text), budget=replace(BUDGET, memory_bytes=100_000_000))
    assert end.cause is Cause.FINISHED


@pytest.mark.parametrize(
    "said",
    [
        {"usage": {"cache_creation_input_tokens": ENDLESS, "cache_read_input_tokens": ENDLESS}},
        {"usage": {"input_tokens": ENDLESS, "output_tokens": ENDLESS}, "num_turns": ENDLESS},
        {"total_cost_usd": -5},
    ],
)
def test_a_result_with_absurd_numbers_is_recorded(stage: Stage, said: dict[str, object]) -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "done", **said}
    end = stage.play({"raw": json.dumps(result) + "\n"}, {"silence": True}, grace_s=0.2)
    assert (end.cause, end.text, end.cost_usd) == (Cause.FINISHED, "done", 0)
    [recorded] = [record for record in stage.records if record["event"] == "result"]
    assert max(recorded["input_tokens"], recorded["output_tokens"], end.turns) <= 2 * 10**9 + 1


def test_so_many_files_that_looking_takes_long_hide_no_large_one(stage: Stage) -> None:
    for number in range(60_000):
        os.close(os.open(stage.tree / str(number), os.O_CREAT | os.O_WRONLY))
    line = "sleep 2.5; head -c 400000000 /dev/zero > large; sleep 600"
    end = stage.play({"shell": line}, budget=replace(BUDGET, disk_bytes=200_000_000, clock_s=6))
    assert end.cause is Cause.DISK
