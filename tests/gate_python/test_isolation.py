"""The isolation that candidates are judged in: by bubblewrap, as root and as a plain user, and by placement."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from python_house import SERVICE, SERVICE_TEST, PythonHouse

from foundry_implementation_actor.domain.app import Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate import bubblewrap, isolate, placement
from foundry_implementation_actor.gate.bubblewrap import Sandbox
from foundry_implementation_actor.gate.isolate import isolated, isolation_refusal
from foundry_implementation_actor.gate.limits import limited
from foundry_implementation_actor.gate.placement import Placement
from foundry_implementation_actor.sandbox import places
from foundry_implementation_actor.sandbox.memory import in_memory

BODY = b"# the candidate\n"
NOBODY = 65_534


@contextmanager
def candidate(house: PythonHouse, beside: dict[str, bytes] | None = None) -> Iterator[Run]:
    body = Candidate(house.place, BODY, (house.root / SERVICE).read_bytes(), beside or {})
    with isolated(house.app, [body]) as run:
        yield run


def shell(house: PythonHouse, line: str, timeout_s: float = 20.0) -> Command:
    return Command(("/bin/sh", "-c", line), house.root, {"PATH": os.defpath}, timeout_s)


def placed(house: PythonHouse) -> Placement:
    return Placement(house.app, {SERVICE: BODY}, "not isolated: for this test")


def state(path: Path) -> tuple[bytes, int, int, int]:
    found = path.stat()
    return path.read_bytes(), found.st_mode, found.st_mtime_ns, found.st_ino


def test_this_host_isolates() -> None:
    assert isolation_refusal() == "", "install bubblewrap, or run the tests where namespaces are allowed"


def test_a_candidate_stands_at_its_live_path_and_the_live_file_is_never_touched(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    with candidate(house) as run:
        assert run(shell(house, f"cat {house.root / SERVICE}")).stdout == BODY
        assert run(shell(house, f"cat {SERVICE}"), original=True).stdout == before[0]
    assert state(house.root / SERVICE) == before


def test_companions_of_a_batch_stand_beside_the_candidate(house: PythonHouse) -> None:
    with candidate(house, beside={"src/plugins/orders/pricing.py": b"# companion\n"}) as run:
        assert run(shell(house, f"cat {SERVICE} src/plugins/orders/pricing.py")).stdout == BODY + b"# companion\n"


def test_a_candidate_cannot_write_to_the_app_to_the_host_or_to_its_own_file(house: PythonHouse) -> None:
    places = f"{SERVICE} src/new.py {Path.home()}/x /etc/x /var/tmp-x"
    with candidate(house) as run:
        script = f"for p in {places}; do (echo x >>$p) 2>/dev/null && echo $p; done; true"
        assert run(shell(house, script)).text == ""


def test_home_and_tmp_are_private_and_forgotten(house: PythonHouse) -> None:
    with candidate(house) as run:
        assert run(shell(house, "echo x >$HOME/x && echo y >/tmp/y && cat $HOME/x /tmp/y")).text == "x\ny\n"
        assert run(shell(house, "cat $HOME/x /tmp/y")).code != 0
    assert not Path("/tmp/y").exists()


def test_the_network_is_off_unless_the_app_asks_for_it(house: PythonHouse) -> None:
    with candidate(house) as run:
        assert run(shell(house, "cat /proc/net/dev")).text.count(":") == 1
    house.app = replace(house.app, network=True)
    with candidate(house) as run:
        everything = Path("/proc/net/dev").read_text()
        assert run(shell(house, "cat /proc/net/dev")).text.count(":") == everything.count(":")


def test_processes_of_the_host_are_not_seen_and_none_is_left(house: PythonHouse) -> None:
    with candidate(house) as run:
        completed = run(shell(house, "setsid sleep 300 >/dev/null 2>&1 & ls /proc | grep -c '^[0-9]'; exit 0"))
    assert int(completed.text) < 12
    assert completed.seconds < 10


def test_settings_of_the_kernel_cannot_be_written_and_the_self_check_tries_it(
    house: PythonHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    try_all = (
        "for p in sys/kernel/core_pattern sys/vm/overcommit_memory sysrq-trigger; do (: >>/proc/$p) && echo $p; done"
    )
    with candidate(house) as run:
        assert run(shell(house, f"({try_all}) 2>/dev/null; true")).text == ""
    if os.getuid() == 0:
        monkeypatch.setattr(places, "kernel_settings", list)
        assert bubblewrap.self_check() == "bubblewrap did not hold what it should"


def test_what_is_in_the_users_home_is_not_seen_but_the_app_and_its_tools_are(
    house: PythonHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a folder that is not hidden anyway, as /tmp is.
    home = Path(tempfile.mkdtemp(prefix="gate-test-", dir="/var/lib" if os.getuid() == 0 else Path.home()))
    kept = home / "tools/bin"
    kept.mkdir(parents=True)
    try:
        (home / "secret").write_text("x")
        (kept / "tool").write_text("#!/bin/sh\necho tool\n")
        (kept / "tool").chmod(0o755)
        (home / "shared").mkdir()
        (home / "shared/part").write_text("part\n")
        (house.root / "linked").symlink_to(home / "shared")
        monkeypatch.setattr(bubblewrap, "_homes", lambda _: [str(home)])
        line = f"cat {home}/secret; tool; cat linked/part; cat {SERVICE}; echo x >{home}/mine && cat {home}/mine"
        command = replace(shell(house, line), env={"PATH": f"{os.defpath}:{kept}"})
        with candidate(house) as run:
            assert run(command).text == "tool\npart\n" + BODY.decode() + "x\n"
        assert not (home / "mine").exists()
    finally:
        shutil.rmtree(home)


def test_an_app_that_is_its_users_home_is_not_hidden(house: PythonHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(house.root))
    with candidate(house) as run:
        assert run(shell(house, f"cat {SERVICE}")).stdout == BODY


def test_an_environment_that_is_a_link_is_seen_where_it_is_and_where_it_leads(
    house: PythonHouse, tmp_path: Path
) -> None:
    (tmp_path / "environments" / "one" / "bin").mkdir(parents=True)
    (tmp_path / "environments" / "one" / "bin" / "python").symlink_to(sys.executable)
    (house.root / ".venv").symlink_to(tmp_path / "environments" / "one")
    house.app = replace(house.app, interpreter=(str(house.root / ".venv" / "bin" / "python"),))
    with candidate(house) as run:
        done = run(Command((*house.app.interpreter, "-c", "print('up')"), house.root, {"PATH": os.defpath}, 20))
    assert (done.text, done.errors) == ("up\n", "")


def test_shared_memory_is_bounded_and_devices_are_no_place_to_write(house: PythonHouse) -> None:
    text = """
        import os
        for place, most in (("/dev/shm", 300), ("/dev", 1)):
            with __import__("contextlib").suppress(OSError):
                for at in range(most):
                    open(f"{place}/{at}", "wb").write(bytes(1 << 20))
                print(place)
    """
    with candidate(house) as run:
        completed = run(Command((sys.executable, "-I", "-S", "-c", textwrap.dedent(text)), house.root, {}, 20))
    assert (completed.text, completed.code) == ("", 0), completed.errors


@pytest.mark.parametrize("by", [candidate, lambda house: contextlib.nullcontext(placed(house))])
@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("import os, signal\nfor _ in range(400):\n    os.fork() or signal.pause()\nsignal.pause()", Ended.PROCESSES),
        ("import os, signal\nfor _ in range(3):\n    os.fork()\nx = b'x' * (700 << 20)\nsignal.pause()", Ended.MEMORY),
    ],
)
def test_too_many_processes_or_too_much_memory_of_all_of_them_is_ended(
    text: str, ended: Ended, by: Callable[[PythonHouse], AbstractContextManager[Run]], house: PythonHouse
) -> None:
    with by(house) as run:
        completed = run(Command((sys.executable, "-I", "-S", "-c", text), house.root, {}, 30))
    assert completed.ended is ended, completed.errors
    assert completed.seconds < 20


def test_a_hang_is_ended_at_its_time_limit_with_all_it_started(house: PythonHouse) -> None:
    with candidate(house) as run:
        completed = run(shell(house, "(setsid sleep 300 &) ; sleep 300", timeout_s=0.5))
    assert completed.ended is Ended.TIMEOUT
    assert completed.argv[0] == "/bin/sh"


def test_memory_and_file_size_have_limits(house: PythonHouse) -> None:
    hungry = "x = bytearray(6 * 1024 ** 3)"
    large = "open('/tmp/large', 'wb').truncate(100 * 1024 ** 2)"
    with candidate(house) as run:
        for text in (hungry, large):
            argv = (sys.executable, "-I", "-S", "-c", text)
            assert run(Command(argv, house.root, {}, 20)).code != 0


def test_a_program_that_is_not_there_is_said_so(house: PythonHouse) -> None:
    command = Command(("no-such-program",), house.root, {"PATH": os.defpath}, 5)
    with candidate(house) as run:
        assert run(command).ended is Ended.NOT_FOUND
    assert placed(house)(command).ended is Ended.NOT_FOUND


def test_compiled_code_of_the_original_is_not_taken_for_the_candidates(house: PythonHouse) -> None:
    live = house.write("src/plugins/orders/flag.py", "VALUE = 1\n")
    argv = (sys.executable, "-c", "import plugins.orders.flag as f; print(f.VALUE)")
    env = {"PYTHONPATH": "src"}
    subprocess.run(argv, cwd=house.root, env=env, check=True, capture_output=True)
    assert list((live.parent / "__pycache__").glob("flag.*"))
    house.at("orders", "Flag", "plugins.orders.flag")
    same_size = Candidate(house.place, b"VALUE = 2\n", b"VALUE = 1\n")
    with isolated(house.app, [same_size]) as run:
        assert run(Command(argv, house.root, env, 20)).text == "2\n"
    by_placement = Placement(house.app, {house.place.path: b"VALUE = 2\n"}, "")
    assert by_placement(Command(argv, house.root, env, 20)).text == "2\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_plain_user_gets_the_same_isolation(house: PythonHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_homes", lambda _: [])  # that user has none
    for folder in (house.root, *house.root.parents):
        if folder.is_relative_to(tempfile.gettempdir()) and folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(0o755)
    (house.root / SERVICE).chmod(0o666)
    script = f"cat {SERVICE}; (echo x >{SERVICE}) 2>/dev/null; id -u; cat /proc/net/dev | grep -c :"
    sandbox = Sandbox(house.app, {})
    with in_memory(BODY) as descriptor:
        view = sandbox._view(shell(house, "true"))
        argv = ("bwrap", *view, *sandbox._bindings({SERVICE: descriptor}), *limited(("/bin/sh", "-c", script)))
        completed = subprocess.run(
            argv, user=NOBODY, group=NOBODY, extra_groups=[], pass_fds=(descriptor,), capture_output=True, check=False
        )  # fmt: skip
    assert completed.stdout == BODY + f"{NOBODY}\n1\n".encode(), completed.stderr.decode()


def test_where_namespaces_are_refused_the_candidate_is_placed_and_the_verdict_says_so(
    house: PythonHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolate, "isolation_refusal", lambda: "no namespaces")
    before = state(house.root / SERVICE)
    with candidate(house) as run:
        assert run(shell(house, f"cat {SERVICE}")).stdout == BODY
        assert run(shell(house, f"cat {SERVICE}"), original=True).stdout == before[0]
    assert state(house.root / SERVICE) == before
    verdict = house.judge("own-test", before[0])
    assert "not isolated (no namespaces)" in verdict.evidence
    assert "Landlock held what ran" in verdict.evidence
    assert state(house.root / SERVICE) == before


@pytest.fixture
def in_place(house: PythonHouse) -> Placement:
    """A placement whose commands Landlock holds, as on a host without namespaces."""
    return Placement(house.app, {SERVICE: BODY}, "not isolated: for this test", tests=[SERVICE_TEST], holds=True)


def test_what_is_held_in_place_changes_nothing_but_its_own_folder(house: PythonHouse, in_place: Placement) -> None:
    paths = f"{SERVICE} {SERVICE_TEST} src/new.py pyproject.toml .foundry/journal/*.json {Path.home()}/x /etc/x /tmp/x"
    line = f"for p in {paths}; do (echo x >>$p) 2>/dev/null && echo $p; done; rm -rf .foundry {SERVICE} 2>/dev/null"
    before = state(house.root / SERVICE)
    completed = in_place(shell(house, f"{line}; echo x >$HOME/x; echo x >$TMPDIR/y; cat $HOME/x {SERVICE}"))
    assert (completed.text, completed.ended, completed.code) == ("x\n" + BODY.decode(), Ended.EXIT, 0)
    assert state(house.root / SERVICE) == before


def test_what_is_held_in_place_reaches_no_network_unless_the_app_asks_for_it(
    house: PythonHouse, in_place: Placement
) -> None:
    text = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('reached')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = (sys.executable, "-I", "-c", text, str(server.getsockname()[1]))
        command = Command(words, house.root, {"PATH": os.defpath}, 20.0)
        opened = Placement(replace(house.app, network=True), {SERVICE: BODY}, "", holds=True)
        assert [in_place(command).text, opened(command).text] == ["", "reached\n"]


def test_what_is_held_in_place_sees_no_home_and_reads_what_only_the_apps_owner_may(
    house: PythonHouse, in_place: Placement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "somebody"
    home.mkdir()
    (home / "key").write_text("a secret\n")
    monkeypatch.setenv("HOME", str(home))
    (house.root / "own").write_text("mine\n")
    (house.root / "own").chmod(0o600)
    assert in_place(shell(house, f"cat own {home}/key 2>/dev/null; true")).text == "mine\n"


def test_placement_puts_the_original_back_whatever_the_command_did_to_the_file(house: PythonHouse) -> None:
    (house.root / SERVICE).chmod(0o640)
    before = state(house.root / SERVICE)
    for vandal in (f"rm {SERVICE}", f"echo x >{SERVICE}", f"mv {SERVICE} {SERVICE}.gone; mkdir {SERVICE}.d"):
        placed(house)(shell(house, vandal))
        assert state(house.root / SERVICE) == before


def _killed_while_placed(house: PythonHouse) -> None:
    """A process that places the candidate and is killed while it stands there."""
    script = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from foundry_implementation_actor.gate import placement\n"
        f"with placement._placed(Path({str(house.root)!r}), {{{SERVICE!r}: {BODY!r}}}):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    completed = subprocess.run((sys.executable, "-c", script), check=False)
    assert completed.returncode == -signal.SIGKILL
    assert (house.root / SERVICE).read_bytes() == BODY


def test_what_a_killed_process_left_placed_is_undone_once(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    _killed_while_placed(house)
    assert placement.recover(house.root) == [f"{SERVICE}: the original is back in its place"]
    assert state(house.root / SERVICE) == before
    assert placement.recover(house.root) == []
    assert {file.name for file in (house.root / ".foundry/journal").iterdir()} <= {"lock"}
    assert not list((house.root / SERVICE).parent.glob(".*"))


def test_what_is_left_of_a_record_that_was_never_whole_is_taken_away(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from foundry_implementation_actor.gate import placement\n"
        "fsync = os.fsync\n"
        "def die(descriptor):\n"
        "    half = os.readlink(f'/proc/self/fd/{descriptor}').endswith('.json.new')\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if half else fsync(descriptor)\n"
        "os.fsync = die\n"
        f"with placement._placed(Path({str(house.root)!r}), {{{SERVICE!r}: {BODY!r}}}):\n"
        "    pass\n"
    )
    assert subprocess.run((sys.executable, "-c", script), check=False).returncode == -signal.SIGKILL
    assert list((house.root / ".foundry/journal").glob(".*.json.new"))
    assert placement.recover(house.root) == []
    assert state(house.root / SERVICE) == before
    assert {file.name for file in (house.root / ".foundry/journal").iterdir()} <= {"lock"}


def test_the_next_placement_undoes_what_a_killed_process_left(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    _killed_while_placed(house)
    completed: Completed = placed(house)(shell(house, f"cat {SERVICE}"), original=True)
    assert completed.stdout == before[0]
    assert state(house.root / SERVICE) == before


def test_what_somebody_wrote_over_a_left_candidate_is_kept_aside(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    _killed_while_placed(house)
    (house.root / SERVICE).write_bytes(b"# written by somebody\n")
    (said,) = placement.recover(house.root)
    assert state(house.root / SERVICE) == before
    (kept,) = (house.root / ".foundry/journal").glob("*.found")
    assert kept.read_bytes() == b"# written by somebody\n"
    assert kept.name in said


def test_two_processes_never_place_at_the_same_time(house: PythonHouse) -> None:
    before = state(house.root / SERVICE)
    script = (
        "import sys, os\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from foundry_implementation_actor.domain.app import App\n"
        "from foundry_implementation_actor.domain.command import Command\n"
        "from foundry_implementation_actor.gate.placement import Placement\n"
        f"root = Path({str(house.root)!r})\n"
        "body = sys.argv[2].encode()\n"
        f"run = Placement(App(root, 'python', 'src', 'tests', ()), {{{SERVICE!r}: body}}, '')\n"
        "for _ in range(8):\n"
        f"    seen = run(Command(('/bin/cat', {SERVICE!r}), root, {{}}, 20)).stdout\n"
        "    assert seen == body, (seen, body)\n"
    )
    children = [subprocess.Popen((sys.executable, "-c", script, "", name)) for name in ("one", "two", "three")]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert state(house.root / SERVICE) == before


def test_a_record_names_what_will_be_placed_before_it_is(house: PythonHouse) -> None:
    _killed_while_placed(house)
    (record,) = (house.root / ".foundry/journal").glob("*.json")
    assert json.loads(record.read_bytes())["path"] == SERVICE
    placement.recover(house.root)


@pytest.mark.parametrize(
    "vandal",
    [
        "rm .foundry/journal/*.json",
        "rm .foundry/journal/*.original",
        "rm -r .foundry",
        "for f in .foundry/journal/*.original; do echo x >$f; done",
        "for f in .foundry/journal/*.original; do rm $f; ln -s /etc/hostname $f; done",
        """sed -i 's|"path": "[^"]*"|"path": "../outside"|' .foundry/journal/*.json; rm .foundry/journal/*.original""",
        """echo '{"path": "../outside", "candidate": "", "original": ""}' >.foundry/journal/00.json""",
    ],
)
def test_what_a_placed_body_does_to_the_gates_record_is_undone_from_memory_and_told(
    vandal: str, house: PythonHouse
) -> None:
    before = (house.root / SERVICE).read_bytes(), (house.root / SERVICE).stat().st_mode
    completed = placed(house)(shell(house, vandal))
    assert completed.ended is Ended.TAMPERED
    assert ".foundry/journal" in completed.errors
    assert ((house.root / SERVICE).read_bytes(), (house.root / SERVICE).stat().st_mode) == before
    assert placement.recover(house.root) == []
    assert not (house.root.parent / "outside").exists()


@pytest.mark.parametrize(
    "vandal",
    [
        f"echo 'def test_x(): pass' >{SERVICE_TEST}",
        f"rm {SERVICE_TEST}",
        "echo x >tests/conftest.py",
        "echo x >tests/plugins/orders/conftest.py",
        "ln -s /nowhere conftest.py",
        "echo x >>pyproject.toml",
    ],
)
def test_what_a_placed_body_does_to_its_test_is_undone_and_told(vandal: str, house: PythonHouse) -> None:
    def files() -> dict[str, bytes]:
        found = (file for file in house.root.rglob("*") if ".foundry" not in file.parts)
        return {str(file): file.read_bytes() for file in found if not file.is_dir()}

    before = files()
    by_placement = Placement(house.app, {SERVICE: BODY}, "", tests=[SERVICE_TEST])
    completed = by_placement(shell(house, f"echo seen; {vandal}"))
    assert completed.ended is Ended.TAMPERED
    assert completed.stdout == b""
    assert files() == before


def test_a_placed_body_that_changes_its_test_is_refused(house: PythonHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolate, "isolation_refusal", lambda: "no namespaces")
    body = (house.root / SERVICE).read_text() + f"\nopen({SERVICE_TEST!r}, 'w').write('def test_x():\\n    pass\\n')\n"
    verdict = house.judge("own-test", body)
    assert verdict.outcome is Outcome.REFUSED
    assert SERVICE_TEST in str(verdict.findings[0])


def test_an_original_whose_record_is_gone_is_kept_and_told_once(house: PythonHouse) -> None:
    before = (house.root / SERVICE).read_bytes()
    _killed_while_placed(house)
    (record,) = (house.root / ".foundry/journal").glob("*.json")
    record.unlink()
    (house.root / ".foundry/journal/other.json").write_text('{"path": "../x", "candidate": "", "original": ""}')
    told = placement.recover(house.root)
    assert [".forged" in told[0], ".found" in told[1], len(told)] == [True, True, 2]
    (kept,) = (house.root / ".foundry/journal").glob("*.found")
    assert kept.read_bytes() == before
    assert placement.recover(house.root) == []
