"""Programs that turn against what watches over them: it is stopped, killed, lied about, or has no room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.command import Command, Ended
from foundry_implementation_actor.system.process import Child, Stream, run_contained
from support.processes import ends

STRAY = "setsid sleep 600 & echo $! >> pids; (setsid sh -c 'sleep 600 & echo $! >> pids; wait' &);"
READY = "until [ $(wc -l < pids) = 2 ]; do :; done; echo $$ >> pids;"
FORGE = 'for pipe in /proc/$PPID/fd/*; do echo "exit 0" > $pipe; done;'
GARBAGE = 'for pipe in /proc/$PPID/fd/*; do printf "exit \\377" > $pipe; done;'
HELD = "for pipe in /proc/$PPID/fd/*; do (sleep 600 > $pipe &); done;"

TURNS = {
    "stops it": "kill -STOP $PPID;",
    "kills it": "kill -KILL $PPID;",
    "forges its word and stops it": f"{FORGE} kill -STOP $PPID;",
    "forges its word and kills it": f"{FORGE} kill -KILL $PPID;",
    "writes garbage for its word": f"{GARBAGE} kill -KILL $PPID;",
    "holds its pipes and stops it": f"{HELD} kill -STOP $PPID;",
    "holds its pipes and kills it": f"{HELD} kill -KILL $PPID;",
    "stops it again and again": "(while :; do kill -STOP $PPID; done) &",
}


def command(folder: Path, line: str, timeout_s: float = 60.0) -> Command:
    return Command(("/bin/sh", "-c", line), cwd=folder, env={"PATH": os.environ["PATH"]}, timeout_s=timeout_s)


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text().split()]


@pytest.mark.parametrize("how", TURNS)
def test_what_a_program_does_to_its_supervisor_lets_nothing_live_and_nobody_wait(tmp_path: Path, how: str) -> None:
    started = time.monotonic()
    done = run_contained(command(tmp_path, f"{STRAY} {READY} {TURNS[how]} exec sleep 600", timeout_s=1.0))
    assert done.ended in {Ended.TIMEOUT, Ended.EXIT}
    assert time.monotonic() - started < 15
    assert len(pids(tmp_path)) == 3
    assert all(not Path(f"/proc/{pid}").exists() for pid in pids(tmp_path))


def test_what_a_killed_supervisor_leaves_is_told_apart_from_the_other_programs(tmp_path: Path) -> None:
    """Several programs at once, of which some kill their supervisors; and a process of the host's own."""
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    hosts_own = subprocess.Popen(["sleep", "600"])
    with Child(command(folders[0], "echo ready; read line; sleep 600")) as other:
        assert other.read(30).stream is Stream.STDOUT

        def turn(folder: Path) -> int:
            with Child(command(folder, f"{STRAY} {READY} kill -KILL $PPID; exec sleep 600")) as child:
                while child.read(30).stream is not Stream.ENDED:
                    pass
            return child.left

        with ThreadPoolExecutor() as pool:
            assert list(pool.map(turn, folders[1:])) == [0] * 5
        assert all(not Path(f"/proc/{pid}").exists() for folder in folders[1:] for pid in pids(folder))
        assert other.read(0).stream is Stream.QUIET
    assert hosts_own.poll() is None
    hosts_own.kill()
    hosts_own.wait()


def test_a_stopped_supervisor_does_not_outlive_the_actor(tmp_path: Path) -> None:
    line = f"{STRAY} {READY} kill -STOP $PPID; kill -KILL $(cat actor); exec sleep 600"
    script = f"""
from pathlib import Path
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.system.process import run_contained
env = {{"PATH": {os.environ["PATH"]!r}}}
run_contained(Command(("/bin/sh", "-c", {line!r}), cwd=Path({str(tmp_path)!r}), env=env, timeout_s=60))
"""
    argv = ["/bin/sh", "-c", 'echo $$ > actor; exec "$0" -c "$1"', sys.executable, script]
    actor = subprocess.Popen(argv, cwd=tmp_path)
    assert actor.wait(30) == -signal.SIGKILL
    assert all(ends(pid) for pid in pids(tmp_path))


NO_ROOM = """
import os, resource
from pathlib import Path
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.system.process import run, run_contained
command = Command(("true",), cwd=Path("/"), env={"PATH": os.defpath}, timeout_s=60)
open_now = lambda: len(os.listdir("/proc/self/fd"))
run_contained(command)
before = open_now()
for most in range(before, before + 16):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for runner in (run, run_contained):
        try:
            runner(command)
        except ActorError as error:
            assert "could not be started: Too many open files" in str(error), error
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        assert open_now() == before, (most, runner)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert run_contained(command).ok
"""


def test_a_host_without_free_descriptors_is_told_and_nothing_leaks() -> None:
    said: Sequence[str] = (sys.executable, "-c", NO_ROOM)
    ran = subprocess.run(said, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
