"""What a warm gate keeps: it survives its candidates, is replaced when it dies, isolates, and leaves nothing."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from python_house import CLEAN, SERVICE_TEST, PythonHouse
from warm_house import judged, servers

from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate import forks
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.gate.warm import Warm
from foundry_implementation_actor.system.supervise import descendants

GOOD = CLEAN[1].read_bytes()

ISOLATION = """
import os, resource, socket, subprocess, sys
from pathlib import Path
import pytest
from plugins.orders import service


def capabilities(status):
    return {{line.split()[1] for line in status.splitlines() if line[:6] in ("CapPrm", "CapEff", "CapInh", "CapAmb")}}


def test_it_has_no_capability_and_can_get_none():
    assert capabilities(Path("/proc/self/status").read_text()) == {{"0" * 16}}
    assert capabilities(subprocess.check_output(["cat", "/proc/self/status"], text=True)) == {{"0" * 16}}
    assert "NoNewPrivs:\\t1" in Path("/proc/self/status").read_text()
    assert subprocess.run(["mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True).returncode != 0


@pytest.mark.parametrize("place", [service.__file__, "{root}/src/new.py", "{root}/pyproject.toml", "/etc/x",
                                   "{home}/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"])
def test_it_cannot_write_to_the_app_or_the_host(place):
    with pytest.raises(OSError):
        open(place, "a").close()


@pytest.mark.parametrize("place", ["/tmp/seen", "/var/tmp/seen", "/dev/shm/seen", os.path.expanduser("~/seen")])
def test_what_it_may_write_to_is_its_own(place):
    assert not os.path.exists(place)
    open(place, "x").write("x")


def test_it_sees_no_process_but_its_own():
    assert os.getpid() == int(os.readlink("/proc/self")) < 10
    assert sum(name.isdigit() for name in os.listdir("/proc")) == 2


def test_the_network_is_itself_alone():
    assert Path("/proc/net/dev").read_text().count(":") == 1
    with socket.create_server(("127.0.0.1", 4711)) as server:
        socket.create_connection(server.getsockname()).close()


def test_its_limits_are_those_of_a_cold_run():
    assert resource.getrlimit(resource.RLIMIT_AS) == (4 << 30, 4 << 30)
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (64 << 20, 64 << 20)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)


def links():
    for name in os.listdir("/proc/self/fd"):
        if os.path.lexists("/proc/self/fd/" + name):
            yield os.readlink("/proc/self/fd/" + name)


def test_it_is_started_as_pytest_would_be():
    main = sys.modules["__main__"]
    assert main.__spec__.name == "pytest.__main__" and sys.argv[0] == main.__file__
    assert sys.path[0] != "" and os.getcwd() == "{root}"
    assert os.getuid() == {user}
    assert [link for link in links() if link.startswith("socket:")] == []
"""


def test_a_forked_test_is_isolated_as_a_cold_one(house: PythonHouse, warm: Warm) -> None:
    test = ISOLATION.format(root=house.root, home=Path.home(), user=os.getuid())
    house.write(SERVICE_TEST, test)
    for where in (isolated, warm.isolated, warm.isolated):
        verdict = judged(house, GOOD, "own-test", where)
        assert verdict.outcome is Outcome.PASSED, "\n".join(map(str, verdict.findings)) or verdict


@pytest.mark.parametrize(
    "trick",
    [
        "import ctypes; ctypes.string_at(0)",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(1, signal.SIGKILL); os.kill(-1, signal.SIGKILL)",
        "import os; os.fork(); os.setsid(); os.fork()",
        "import os, signal\n        for _ in range(3):\n            if os.fork() == 0: signal.pause()",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import os; os.closerange(0, 100)",
        "import sys; sys.exit(0)",
        "x = bytearray(6 * 1024 ** 3)",
    ],
)
def test_what_a_body_does_to_its_process_does_nothing_to_the_server(trick: str, house: PythonHouse, warm: Warm) -> None:
    judged(house, GOOD, "own-test", warm.isolated)
    before = servers()["forks"]
    house.app = type(house.app)(**{**vars(house.app), "test_timeout_s": 2.0})
    body = GOOD.replace(b"        lines = [", f"        {trick}\n        lines = [".encode(), 1)
    assert body != GOOD
    judged(house, body, "own-test", warm.isolated)
    assert servers()["forks"] == before != []
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED


@pytest.mark.parametrize("kind", ["forks", "ty"])
def test_a_server_that_is_killed_is_replaced_and_the_verdict_is_the_same(
    kind: str, house: PythonHouse, warm: Warm
) -> None:
    judge = {"forks": "own-test", "ty": "linkage"}[kind]
    assert judged(house, GOOD, judge, warm.isolated).outcome is Outcome.PASSED
    killed = servers()[kind]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert judged(house, GOOD, judge, warm.isolated).outcome is Outcome.PASSED
    assert judged(house, GOOD, judge, warm.isolated).outcome is Outcome.PASSED
    assert servers()[kind]
    assert not set(servers()[kind]) & set(killed)


def test_nothing_is_left_when_it_is_closed_and_it_judges_cold_then(house: PythonHouse) -> None:
    with Warm() as warm:
        judged(house, GOOD, "linkage", warm.isolated)
        assert descendants(os.getpid())
    assert descendants(os.getpid()) == []
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED
    assert descendants(os.getpid()) == []


def test_nothing_is_left_when_the_gate_is_killed(house: PythonHouse) -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from python_house import CLEAN, python_house\n"
        "from warm_house import judged, servers\n"
        "from foundry_implementation_actor.gate.warm import Warm\n"
        "house, warm = python_house(Path(sys.argv[1])), Warm()\n"
        "for judge in ('linkage', 'own-test'):\n"
        "    judged(house, CLEAN[1].read_bytes(), judge, warm.isolated)\n"
        "print(*[pid for pids in servers().values() for pid in pids], flush=True)\n"
        "sys.stdin.read()\n"
    )
    here = Path(__file__).parent
    argv = (sys.executable, "-c", script, str(house.root), str(here))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as gate:
        assert gate.stdout is not None
        pids = [int(word) for word in gate.stdout.readline().split()]
        assert len(pids) == 3
        below = [os.pidfd_open(pid) for pid in descendants(gate.pid)]
        gate.kill()
        gate.wait()
    try:
        for one in below:
            assert select.select([one], [], [], 20)[0]
    finally:
        for one in below:
            os.close(one)


def test_where_no_server_can_be_kept_it_judges_cold(
    house: PythonHouse, warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_VIEW", ("/bin/false",))
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED
    assert servers()["forks"] == []
