"""Run folders that a session made hard to remove: told, left for the next sweep, and never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.workspace.checkout import run_folder, sweep


def as_a_plain_user() -> list[str]:
    """The words before a command that take root's right to pass over permissions away."""
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []


HEAD = """
import sys
from pathlib import Path
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.workspace.checkout import run_folder, sweep
state = Path(sys.argv[1])
runs = state / "runs"
journal = Journal(sink=lambda line, _: print(line))
"""


def told(code: str, state: Path) -> list[dict[str, Any]]:
    """The records of a process that may not write where permissions forbid it."""
    argv = [*as_a_plain_user(), sys.executable, "-c", HEAD + code, str(state)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def deep(folder: Path, levels: int = 3000) -> None:
    """Directories far below what a path can name."""
    code = "import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(int(sys.argv[2])): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", code, str(folder), str(levels)], check=True)


def test_a_run_folder_of_any_depth_is_removed(tmp_path: Path) -> None:
    with run_folder(tmp_path, "deep-", Journal()) as folder:
        deep(folder)
    assert not list((tmp_path / "runs").iterdir())


def test_a_run_folder_that_cannot_be_removed_is_told_and_left_for_the_next_sweep(tmp_path: Path) -> None:
    code = """
with run_folder(state, "kept-", journal) as folder:
    (folder / "deep/er").mkdir(parents=True)
    runs.chmod(0o500)
runs.chmod(0o700)
sweep(state, journal)
"""
    left, swept = told(code, tmp_path)
    assert (left["step"], swept["step"]) == ("not-removed", "swept")
    assert left["folder"] == swept["folder"]
    assert "Permission denied" in left["error"]
    assert not list((tmp_path / "runs").iterdir())


def test_an_error_of_the_run_is_not_covered_by_one_of_its_folder(tmp_path: Path) -> None:
    code = """
try:
    with run_folder(state, "kept-", journal):
        runs.chmod(0o500)
        raise KeyError("the run's own")
except KeyError:
    journal.event("as-it-was")
runs.chmod(0o700)
"""
    assert [record["step"] for record in told(code, tmp_path)] == ["not-removed", "as-it-was"]


def test_one_folder_that_cannot_be_swept_keeps_no_other(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a-good", "b-locked/lock", "c-closed/inner", "d-deep", "e-good"):
        (runs / name).mkdir(parents=True)
    (runs / "c-closed/inner").chmod(0)
    (runs / "c-closed").chmod(0)
    deep(runs / "d-deep")
    records = told("sweep(state, journal)", tmp_path)
    swept = [record["folder"] for record in records if record["step"] == "swept"]
    assert swept == ["a-good", "c-closed", "d-deep", "e-good"]
    [left] = [record for record in records if record["step"] == "not-removed"]
    assert left["folder"] == "b-locked"
    assert "Is a directory" in left["error"]
    assert [entry.name for entry in runs.iterdir()] == ["b-locked"]


@pytest.mark.parametrize("mode", [0o500, 0])
def test_a_state_that_cannot_be_written_stops_no_start_and_is_told_by_the_first_run(tmp_path: Path, mode: int) -> None:
    state = tmp_path / "state"
    (state / "runs/left").mkdir(parents=True)
    state.chmod(mode)
    code = """
sweep(state, journal)
try:
    with run_folder(state, "run-", journal):
        raise AssertionError
except ActorError as error:
    journal.event("refused", code=error.code, error=str(error))
"""
    *_, refused = records = told(code, state)
    state.chmod(0o700)
    assert [record["step"] for record in records] == ["not-swept", "refused"]
    assert refused["code"] == "unfit"
    assert "the actor's state cannot be written: Permission denied" in refused["error"]


def test_a_folder_of_a_run_that_goes_on_is_not_swept_whatever_it_permits(tmp_path: Path) -> None:
    with run_folder(tmp_path, "busy-", Journal()) as folder:
        folder.chmod(0)
        assert sweep(tmp_path, Journal()) == []
        assert folder.is_dir()


def test_a_run_folder_is_removed_once_descriptors_are_free_again(tmp_path: Path) -> None:
    code = """
import os, resource, threading
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
with run_folder(state, "run-", journal) as folder:
    (folder / "in").mkdir()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), hard))
    threading.Timer(0.2, resource.setrlimit, (resource.RLIMIT_NOFILE, (256, hard))).start()
"""
    assert told(code, tmp_path) == []
    assert not list((tmp_path / "runs").iterdir())
