"""A process that wants to outlive its session: none does, but for one that the actor has no right to end."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from support.place import Place, shell, write
from support.processes import ends

# Forks twice, opens a session of its own, hears no signal that can be ignored, and holds on to nothing.
DAEMON = """
import os, signal, sys
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.chdir("/")
os.closerange(0, 1024)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    signal.pause()
"""
# Goes on as a new process of a session of its own, again and again, so that no list of processes is ever right.
RUNNER = """
import os, sys
open(sys.argv[1], "w").close()
while os.path.exists(sys.argv[1]):
    if os.fork():
        os._exit(0)
    os.setsid()
"""


def left_running(place: Place, text: str) -> str:
    """A line of shell that starts a piece of Python and waits until it has made the file `mark`."""
    mark = place.base / "mark"
    (place.base / "left.py").write_text(text)
    return f"{sys.executable} -I -S {place.base}/left.py {mark} & until [ -e {mark} ]; do :; done"


@pytest.mark.parametrize("others", [0, 3])
def test_a_daemon_that_ignores_every_signal_is_dead_when_its_session_is_over(tmp_path: Path, others: int) -> None:
    with Place(tmp_path, local=True) as place:
        line = left_running(place, DAEMON)
        place.landed(write("backend/new.py"), shell(" ".join(["sleep 600 &"] * others)), shell(line))
        assert not Path(f"/proc/{(place.base / 'mark').read_text()}").exists()
        assert place.recorded("session-escaped") == []


def test_a_chain_of_processes_that_are_never_the_same_is_over_with_its_session(tmp_path: Path) -> None:
    """What was left of it would be a child of this process's, and the guard after each test would name it."""
    with Place(tmp_path, local=True) as place:
        place.landed(write("backend/new.py"), shell(left_running(place, RUNNER)))
        assert place.recorded("session-escaped") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_process_that_may_not_be_ended_is_told_and_nothing_of_the_work_is_used(tmp_path: Path) -> None:
    """An actor that may not end other users' processes, and a session that leaves one, as by a `sudo`.

    The session's own program is killed, so that nothing but the end of all its processes is waited for.
    """
    with Place(tmp_path, local=True) as place:
        away = f"setpriv --reuid=65534 --clear-groups sleep 600 > {os.devnull} 2>&1 & echo $! > {place.base}/pid"
        actor = place.command(
            "implement", "--json", steps=(write("backend/new.py"), shell(f"exec {away}; kill -9 $PPID")),
            under=("setpriv", "--bounding-set=-kill", "--"),
        )  # fmt: skip
        _, told = actor.communicate(timeout=120)
        left = int((place.base / "pid").read_text())
        assert Path(f"/proc/{left}").exists()
        os.kill(left, signal.SIGKILL)
        assert ends(left)
        assert list(place.repo.branches()) == ["main"]
    records = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert [record["processes"] for record in records if record.get("step") == "session-escaped"] == [1]
    assert [record for record in records if record.get("step") == "kept"] == []
    assert actor.returncode == 1
    assert "the session cannot be trusted to be over" in told
    assert "nothing of it was pushed\nhint: look for what is left on the host and end it" in told
