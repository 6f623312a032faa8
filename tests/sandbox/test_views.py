"""What a command sees and may change under a view, in both sandboxes."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.command import Confinement
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox import landlock, rules
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.choose import choose, why_not
from foundry_implementation_actor.sandbox.hand_over import may_switch
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.layout import Seen, lay_out
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Network, Sandbox
from foundry_implementation_actor.system.process import Child, Stream, run_contained
from support.plain import SOURCES, Scene, plain_python, run_as_plain

BOTH = pytest.mark.parametrize("sandbox", [Bubblewrap(), Landlock()], ids=lambda one: str(one.name))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path.resolve())


@BOTH
def test_the_roots_home_and_tmp_are_changed_and_nothing_else_is(scene: Scene, sandbox: Sandbox) -> None:
    line = "echo new >backend/inside.txt; echo new >backend/made; echo x >$HOME/h; echo x >$TMPDIR/t"
    refused = "for p in outside.txt made ../made ../secret /etc/x; do (echo x >>$p) 2>/dev/null && echo $p; done; true"
    done = scene.shell(sandbox, f"{line}; {refused}")
    assert (done.text, done.errors, done.code) == ("", "", 0)
    assert [(scene.root / name).read_text() for name in ("inside.txt", "made")] == ["new\n", "new\n"]
    assert (scene.home / "h").exists()
    assert (scene.temporary / "t").exists()
    assert sorted(path.name for path in scene.tree.iterdir()) == ["backend", "outside.txt"]
    assert (scene.tree / "outside.txt").read_text() == "kept\n"


@BOTH
def test_a_refused_write_says_why(scene: Scene, sandbox: Sandbox) -> None:
    said = scene.shell(sandbox, "echo x >outside.txt").errors
    assert "Read-only file system" in said or "Permission denied" in said


@BOTH
def test_the_tree_is_read_and_listed_and_the_state_around_it_is_not(scene: Scene, sandbox: Sandbox) -> None:
    assert scene.shell(sandbox, "cat outside.txt; ls").text == "kept\nbackend\noutside.txt\n"
    assert scene.shell(sandbox, f"cat {scene.state}/secret; ls {scene.state} | grep secret").text == ""


@BOTH
def test_the_innermost_place_counts(scene: Scene, sandbox: Sandbox) -> None:
    private = scene.tree / "private"
    (private / "open" / "mine").mkdir(parents=True)
    (private / "key").write_text("a secret\n")
    (private / "open" / "seen").write_text("seen\n")
    view = {
        "hidden": (scene.state, private),
        "shown": (scene.tree, private / "open"),
        "writable": (private / "open" / "mine",),
    }
    line = "cat private/key; cat private/open/seen; echo x >private/open/mine/x && echo wrote; echo x >backend/x"
    assert scene.shell(sandbox, line, **view).text == "seen\nwrote\n"
    assert not (scene.root / "x").exists()


@BOTH
def test_a_place_to_change_that_is_a_link_or_not_there_is_refused(scene: Scene, sandbox: Sandbox) -> None:
    (scene.tree / "link").symlink_to(scene.state)
    for place in (scene.tree / "link", scene.tree / "none", scene.tree / "link" / "tmp", scene.tree / "outside.txt"):
        with pytest.raises(ActorError, match="has to be a folder") as caught:
            scene.shell(sandbox, "true", writable=(place,))
        assert caught.value.code is Code.UNFIT


@BOTH
def test_two_commands_at_once_see_nothing_of_each_other(tmp_path: Path, sandbox: Sandbox) -> None:
    one, other = Scene(tmp_path.resolve() / "one"), Scene(tmp_path.resolve() / "other")
    waiting = one.command("/bin/sh", "-c", "echo mine >$HOME/mine; echo $$; exec sleep 60")
    hidden = (one.state, other.state)
    with sandbox.confine(waiting, one.view(hidden=hidden)) as confined, Child(confined) as child:
        pid = child.read(20.0).chunk.decode().strip()
        line = f"cat {one.home}/mine; kill -9 {pid}; tr '\\0' '\\n' </proc/{pid}/environ | grep {one.home}; true"
        done = other.shell(sandbox, line, hidden=hidden)
        assert done.text == ""
        assert child.read(0.0).stream is Stream.QUIET


@BOTH
def test_what_a_command_leaves_running_is_dead_when_it_has_ended(scene: Scene, sandbox: Sandbox) -> None:
    line = "mkfifo $HOME/pipe; (setsid sh -c 'trap \"\" TERM HUP; exec 3>$HOME/pipe; sleep 300' &) ; exec 3<$HOME/pipe"
    started = time.monotonic()
    assert scene.shell(sandbox, line).code == 0
    assert time.monotonic() - started < 20
    reading = os.open(scene.home / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(reading, 1) == b""  # nobody holds its other end
    os.close(reading)


_ACTOR = """
import sys
from pathlib import Path
from support.plain import SOURCES, Scene, plain_python, run_as_plain
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.system.process import Child
scene, sandbox = Scene(Path(sys.argv[1])), choose(sys.argv[2])
inside = "mkfifo $HOME/pipe; exec 4<>$HOME/pipe 3>$HOME/pipe; echo up; exec setsid sleep 300"
with sandbox.confine(scene.command("/bin/sh", "-c", inside), scene.view()) as confined, Child(confined) as child:
    print(child.read(20.0).chunk.decode(), end="", flush=True)
    child.read(300.0)
"""


@BOTH
def test_when_the_actor_is_killed_nothing_inside_lives_on(tmp_path: Path, sandbox: Sandbox) -> None:
    base = tmp_path.resolve()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCES, SOURCES.parent / "tests")))}
    words = (sys.executable, "-c", _ACTOR, str(base), sandbox.name)
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as actor:
        assert actor.stdout is not None
        assert actor.stdout.readline() == "up\n"
        reading = os.open(base / "state" / "home" / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        actor.kill()
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        assert poll.poll(20_000) == [(reading, select.POLLHUP)]  # whoever held its other end is dead
        os.close(reading)


@BOTH
@pytest.mark.parametrize("network", [Network.OPEN, Network.CLOSED])
def test_a_network_is_there_only_when_it_is_open(scene: Scene, sandbox: Sandbox, network: Network) -> None:
    text = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)); print('open')"
    done = scene.run(sandbox, "python", "-I", "-c", text, network=network)
    routes = Path("/proc/net/route").read_text().count("\n") > 1
    assert (done.text == "open\n") == (network is Network.OPEN and routes), done.errors


@BOTH
def test_a_socket_without_a_name_is_not_reached_though_the_network_is_open(scene: Scene, sandbox: Sandbox) -> None:
    text = "import socket, sys; socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1]); print('reached')"
    with socket.socket(socket.AF_UNIX) as listener:
        name = f"foundry-test-{os.getpid()}"
        listener.bind(f"\0{name}")
        listener.listen()
        done = scene.run(sandbox, "python", "-I", "-c", text, name, network=Network.OPEN)
    assert (done.text, "PermissionError" in done.errors) == ("", True)


@BOTH
def test_a_program_that_cannot_be_confined_is_not_started(scene: Scene, sandbox: Sandbox) -> None:
    with in_memory(b"no filter") as nonsense:
        command = scene.command("/bin/sh", "-c", f"echo ran >{scene.home}/ran")
        with sandbox.confine(command, scene.view()) as confined:
            broken = replace(confined, confinement=Confinement(filter=nonsense))
            done = run_contained(broken)
    assert done.code == 126
    assert not (scene.home / "ran").exists()


@BOTH
def test_what_is_hidden_by_a_link_to_it_is_hidden_and_a_linked_folder_of_programs_is_seen(
    scene: Scene, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, home = scene.base / "private", scene.base / "somebody"
    (home / "versions/1/bin").mkdir(parents=True)
    private.mkdir()
    (private / "key").write_text("a secret\n")
    (home / "versions/1/bin/tool").write_text("#!/bin/sh\necho tool\n")
    (home / "versions/1/bin/tool").chmod(0o755)
    (home / "current").symlink_to("versions/1")
    (scene.base / "link").symlink_to(private)
    monkeypatch.setenv("HOME", str(home))
    command = scene.command("/bin/sh", "-c", f"tool; cat {private}/key {scene.base}/link/key; true")
    command = replace(command, env={**command.env, "PATH": f"{os.defpath}:{home}/current/bin"})
    with sandbox.confine(command, scene.view(hidden=(scene.state, scene.base / "link"))) as confined:
        assert run_contained(confined).text == "tool\n"


def test_of_a_place_named_twice_the_one_with_more_rights_counts(scene: Scene) -> None:
    view = scene.view(hidden=(scene.state, scene.root), shown=(scene.tree, scene.root))
    found = {place.path: place.seen for place in lay_out(scene.command("true"), view).places}
    assert found[str(scene.root)] is Seen.WRITABLE


def test_a_programs_own_folders_are_shown_and_the_home_around_them_is_not(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = scene.base / "somebody"
    for folder in ("tools/bin", "tools/lib", "tools/etc", ".local/bin", ".local/lib", "bin"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    command = scene.command("true")
    path = ":".join(str(home / name) for name in ("tools/bin", ".local/bin", "bin"))
    laid = lay_out(replace(command, env={"PATH": path}), scene.view())
    hidden = [name for name in ("", "tools", "tools/etc", ".local", ".local/lib") if laid.hides(str(home / name))]
    seen = [name for name in ("tools/bin", "tools/lib", ".local/bin", "bin") if not laid.hides(str(home / name))]
    assert (len(hidden), len(seen)) == (5, 4)


@pytest.mark.skipif(not may_switch(), reason="only root hands files over")
def test_what_is_handed_over_is_what_lies_in_the_places_and_nothing_that_links_lead_to(scene: Scene) -> None:
    (scene.root / "link").symlink_to(scene.state / "secret")
    os.link(scene.tree / "outside.txt", scene.root / "second-name")
    (scene.root / "deep" / "er").mkdir(parents=True)
    before = scene.state.stat().st_mode
    assert scene.shell(Landlock(), "echo x >backend/deep/er/x; id -u").text == "65534\n"
    assert scene.state.stat().st_mode & 0o007 == before & 0o007
    owners = {path: path.lstat().st_uid for path in (scene.root / "deep" / "er" / "x", scene.root / "link")}
    assert set(owners.values()) == {65534}
    kept = (scene.state / "secret", scene.tree / "outside.txt", scene.tree, scene.state)
    assert {path.stat().st_uid for path in kept} == {0}


def test_auto_takes_the_strongest_that_holds_and_never_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("auto").name == "bubblewrap"
    monkeypatch.setenv("PATH", "/nonexistent")
    why_not.cache_clear()
    assert choose("auto").name == "landlock"
    with pytest.raises(ActorError, match="bubblewrap: bubblewrap is not installed") as caught:
        choose("bubblewrap")
    assert (caught.value.code, "SANDBOX=none" in caught.value.hint) == (Code.UNFIT, True)
    monkeypatch.setattr(landlock, "missing", lambda: "the kernel has none")
    why_not.cache_clear()
    with pytest.raises(ActorError, match="bubblewrap is not installed; landlock: the kernel has none"):
        choose("auto")
    why_not.cache_clear()


def test_auto_passes_over_a_sandbox_that_leaves_the_network_open_and_its_name_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(rules, "abi", lambda: 3)
    why_not.cache_clear()
    with pytest.raises(ActorError, match=r"does not rule on TCP.*; SANDBOX=landlock accepts that"):
        choose("auto")
    assert {"network-open", "signals"} <= {gap.name for gap in choose("landlock").gaps}
    monkeypatch.setattr(rules, "abi", lambda: 2)
    why_not.cache_clear()
    with pytest.raises(ActorError, match="of version 2, and 3 is needed"):
        choose("landlock")
    why_not.cache_clear()


@pytest.mark.parametrize("version", [3, 4, 5])
def test_as_on_an_older_kernel_a_closed_network_is_closed(scene: Scene, version: int) -> None:
    text = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('reached')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = scene.run(Landlock(version), "python", "-I", "-c", text, str(server.getsockname()[1]))
    assert (done.text, "PermissionError" in done.errors or "Operation not permitted" in done.errors) == ("", True)


def test_none_is_taken_only_by_its_name_and_says_that_it_holds_nothing(scene: Scene) -> None:
    sandbox = choose("none")
    assert isinstance(sandbox, NoSandbox)
    assert [gap.name for gap in sandbox.gaps] == ["everything"]
    assert scene.shell(sandbox, "echo x >outside.txt").code == 0
    with pytest.raises(ActorError, match="there is no sandbox 'chroot'"):
        choose("chroot")


RUNS_AS_PLAIN = """
import sys, tempfile
from pathlib import Path
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.port import View
from foundry_implementation_actor.system.process import run_contained
name, closed = sys.argv[1:]
with tempfile.TemporaryDirectory() as base:
    root, home, temporary = (Path(base).resolve() / one for one in ("tree", "home", "tmp"))
    for folder in (root, home, temporary):
        folder.mkdir()
    path = f"{closed}/one/bin:/usr/bin:/bin"
    command = Command(("sh", "-c", "echo worked > made; cat made"), root, {"PATH": path}, 60)
    view = View((root,), home, temporary, hidden=(Path(closed, "two"),), shown=(Path(closed, "three"),))
    with (Bubblewrap() if name == "bubblewrap" else Landlock()).confine(command, view) as confined:
        done = run_contained(confined)
    print(done.text + done.errors, end="")
"""


@BOTH
def test_a_folder_that_is_closed_to_the_actors_own_user_keeps_nothing_from_being_run(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    if not plain_python() or why_not(str(sandbox.name)):
        pytest.skip("no interpreter for a plain user here, or no such sandbox")
    closed = tmp_path / "closed"
    for name in ("one/bin", "one/lib", "two", "three"):
        (closed / name).mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(closed / "daemon"))
        daemon.listen()
        closed.chmod(0)
        try:
            assert run_as_plain(RUNS_AS_PLAIN, str(sandbox.name), str(closed)) == "worked\n"
        finally:
            closed.chmod(0o700)
