"""Child processes that misbehave, and the promise that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Child, Stop, Stream, run, run_contained
from support.processes import ends

SH = "/bin/sh"

Runner = Callable[[Command], Completed]


def command(tmp_path: Path, *argv: str, **how: object) -> Command:
    given: dict[str, Any] = {"cwd": tmp_path, "env": {"PATH": os.environ["PATH"]}, "timeout_s": 30.0, **how}
    return Command(argv, **given)


def contained(tmp_path: Path, line: str, **how: object) -> Completed:
    return run_contained(command(tmp_path, SH, "-c", line, **how))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def pid_in(path: Path) -> int:
    return int(path.read_text())


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_output_exit_code_and_both_streams_come_back(tmp_path: Path) -> None:
    done = contained(tmp_path, "echo out; echo err >&2; exit 3")
    assert (done.code, done.stdout, done.stderr, done.ended, done.ok) == (3, b"out\n", b"err\n", Ended.EXIT, False)


def test_a_program_killed_by_a_signal_has_its_negative_number(tmp_path: Path) -> None:
    assert contained(tmp_path, "kill -TERM $$").code == -signal.SIGTERM


def test_the_environment_is_whole_and_nothing_is_inherited(tmp_path: Path) -> None:
    done = run_contained(command(tmp_path, "env", env={"PATH": os.environ["PATH"], "ONLY": "this"}))
    names = {line.partition("=")[0] for line in done.text.splitlines()}
    # LC_CTYPE is set by the supervisor's own interpreter where no locale is given.
    assert names - {"LC_CTYPE"} == {"PATH", "ONLY"}


def test_no_descriptor_of_the_actor_reaches_the_program(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        done = contained(tmp_path, "ls -l /proc/self/fd")
    assert str(tmp_path / "open") not in done.text


ESCAPES = {
    "in the background": "sleep 600 & echo $! > pid",
    "in a session of its own": "setsid sleep 600 & echo $! > pid",
    "by a double fork": "(setsid sh -c 'sleep 600 & echo $! > pid; wait' &) ; until [ -s pid ]; do :; done",
    "ignoring polite signals": "(trap '' TERM INT; sleep 600 & echo $! > pid; wait) & until [ -s pid ]; do :; done",
    "stopped": "sleep 600 & echo $! > pid; kill -STOP $!",
    "holding stdout open": "sleep 600 >&1 2>&1 & echo $! > pid",
}  # fmt: skip


@pytest.mark.parametrize("how", ESCAPES)
def test_nothing_that_a_program_started_outlives_it(tmp_path: Path, how: str) -> None:
    done = contained(tmp_path, ESCAPES[how])
    assert done.ok
    assert not alive(pid_in(tmp_path / "pid"))


@pytest.mark.parametrize("how", ["exec sleep 600", "trap '' TERM INT; sleep 600; sleep 600", "while :; do :; done"])
def test_a_program_is_killed_at_its_time_limit(tmp_path: Path, how: str) -> None:
    started = time.monotonic()
    done = contained(tmp_path, f"echo $$ > pid; {how}", timeout_s=0.3)
    assert done.ended is Ended.TIMEOUT
    assert time.monotonic() - started < 10
    assert not alive(pid_in(tmp_path / "pid"))


def test_a_program_that_prints_without_end_is_killed_at_the_limit(tmp_path: Path) -> None:
    done = contained(tmp_path, "echo $$ > pid; exec cat /dev/zero", output_limit=1_000_000)
    assert done.ended is Ended.OUTPUT
    assert 1_000_000 < len(done.stdout) < 2_000_000
    assert not alive(pid_in(tmp_path / "pid"))


def test_both_streams_count_towards_the_output_limit(tmp_path: Path) -> None:
    assert (
        contained(tmp_path, "head -c 600 /dev/zero; head -c 600 /dev/zero >&2", output_limit=1000).ended is Ended.OUTPUT
    )
    assert contained(tmp_path, "head -c 500 /dev/zero; head -c 500 /dev/zero >&2", output_limit=1000).ok


def test_a_stop_ends_a_program_at_once(tmp_path: Path) -> None:
    stop = Stop()
    with Child(command(tmp_path, SH, "-c", "echo ready; sleep 600"), stop) as child:
        assert child.read(30).stream is Stream.STDOUT
        setter = threading.Thread(target=stop.set)
        setter.start()
        assert child.read(30).stream is Stream.STOPPED
        setter.join()


def test_a_stop_that_was_set_before_lets_nothing_run(tmp_path: Path) -> None:
    stop = Stop()
    stop.set()
    assert run_contained(command(tmp_path, "sleep", "600"), stop).ended is Ended.STOPPED


def test_a_program_dies_with_its_supervisor_and_it_is_told_that_more_may_be_left(tmp_path: Path) -> None:
    with Child(command(tmp_path, SH, "-c", "echo $$ > pid; kill -9 $PPID; exec sleep 600")) as child:
        while child.read(30).stream is not Stream.ENDED:
            pass
        assert (child.code, child.left) == (-signal.SIGKILL, 1)
        assert ends(pid_in(tmp_path / "pid"))


def test_everything_dies_with_the_actor(tmp_path: Path) -> None:
    """The actor is a process of its own here, killed while its program works."""
    script = f"""
from pathlib import Path
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.system.process import run_contained
line = "setsid sleep 600 & echo $! > inner; echo $$ > pid; kill -9 $(cat actor); sleep 600"
env = {{"PATH": {os.environ["PATH"]!r}}}
run_contained(Command(("/bin/sh", "-c", line), cwd=Path({str(tmp_path)!r}), env=env, timeout_s=60))
"""
    argv = ["/bin/sh", "-c", 'echo $$ > actor; exec "$0" -c "$1"', sys.executable, script]
    actor = subprocess.Popen(argv, cwd=tmp_path)
    assert actor.wait(30) == -signal.SIGKILL
    assert ends(pid_in(tmp_path / "pid"))
    assert ends(pid_in(tmp_path / "inner"))


@pytest.mark.parametrize("runner", [run, run_contained])
def test_a_program_that_is_not_there_is_an_unfit_host(tmp_path: Path, runner: Runner) -> None:
    with pytest.raises(ActorError, match="'no-such-program' was not found") as raised:
        runner(command(tmp_path, "no-such-program"))
    assert raised.value.code is Code.UNFIT


UNSTARTABLE = {
    "an argument with a NUL": ("true", "a\0b"),
    "an argument that is too long": ("true", "x" * 200_000),
}


@pytest.mark.parametrize("runner", [run, run_contained])
@pytest.mark.parametrize("what", UNSTARTABLE)
def test_a_program_that_cannot_be_started_is_an_error_that_says_so(tmp_path: Path, runner: Runner, what: str) -> None:
    before = open_descriptors()
    with pytest.raises(ActorError, match="could not be started") as raised:
        runner(command(tmp_path, *UNSTARTABLE[what]))
    assert raised.value.code is Code.UNFIT
    assert open_descriptors() == before


@pytest.mark.parametrize("runner", [run, run_contained])
def test_a_working_directory_that_is_gone_is_an_error_that_says_so(tmp_path: Path, runner: Runner) -> None:
    with pytest.raises(ActorError, match=r"could not be started.*gone"):
        runner(command(tmp_path, "true", cwd=tmp_path / "gone"))


def test_a_file_that_is_no_program_ends_with_126(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"\x7fELF nothing")
    (tmp_path / "bad").chmod(0o755)
    assert run_contained(command(tmp_path, str(tmp_path / "bad"))).code == 126


def test_a_tool_of_ours_is_killed_with_its_group_at_the_time_limit(tmp_path: Path) -> None:
    done = run(command(tmp_path, SH, "-c", "sleep 600 & echo $! > pid; wait", timeout_s=0.1))
    assert done.ended is Ended.TIMEOUT
    assert ends(pid_in(tmp_path / "pid"))


def test_a_tool_of_ours_sees_its_stdin_and_then_the_end_of_file(tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    assert run(command(tmp_path, "cat", stdin=content)).stdout == content
    assert run(command(tmp_path, "cat")).stdout == b""


def test_many_runs_leave_no_descriptor_behind(tmp_path: Path) -> None:
    contained(tmp_path, "true")
    before = open_descriptors()
    for _ in range(10):
        contained(tmp_path, "true")
        run(command(tmp_path, "true"))
    assert open_descriptors() == before
