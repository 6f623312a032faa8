"""`components[].verify`: held, on what would be pushed, before it is pushed; only green lets a change through."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from foundry_implementation_actor.sandbox.choose import why_not
from support.place import BRANCH, TOKEN, Landed, Place, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR

NEW = "backend/discount.py"
HELD = ["bubblewrap", "landlock"]
ALLOCATES = "python3 -c 'import time; x = b\"x\" * 300_000_000; time.sleep(600)'"


def sidecar(backend: Sequence[str], stub: Sequence[str]) -> str:
    """The usual sidecar with a `verify` for its components."""
    text = SIDECAR
    for name, argv in (("backend", backend), ("stub", stub)):
        if argv:
            line = f"  - name: {name}\n"
            assert line in text
            text = text.replace(line, f"{line}    verify: {json.dumps([*argv])}\n")
    return text


def place_of(base: Path, *argv: str, stub: Sequence[str] = (), **settings: str) -> Place:
    files = {**CAPABILITY_FILES, ".gitignore": "*.cache\n"}
    return Place(base, files=files, sidecar=sidecar(argv, stub), local=True, settings=settings)


def refused(base: Path, line: str, **settings: str) -> str:
    with place_of(base, "sh", "-c", line, stub=(), **settings) as place:
        return place.refused(write(NEW))


def needs(sandbox: str) -> None:
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")


def test_green_in_the_sandbox_is_a_trailer_beside_base_request_and_cost(tmp_path: Path) -> None:
    with place_of(tmp_path, "test", "-f", NEW, SANDBOX="auto") as place:
        landed = place.landed(write(NEW))
    assert f"Verified-By: backend: test -f {NEW}\n" in landed.message
    assert "Unjudged:" not in landed.message
    assert "Cost: USD 0." in landed.message
    assert f"Base: {landed.parent}\n" in landed.message


def test_red_refuses_with_the_end_of_its_output_and_keeps_the_work(tmp_path: Path) -> None:
    because = refused(tmp_path, "seq 100000; echo the cause >&2; exit 3")
    assert "ended with code 3, its output ending `" in because
    assert "`; nothing was pushed; the change is kept as " in because
    assert "the cause" in because
    assert ".patch" in because
    assert len(because) < 5_000


def test_a_secret_in_its_output_is_hidden(tmp_path: Path) -> None:
    because = refused(tmp_path, f"echo it is {TOKEN[:8]}''{TOKEN[8:]}; exit 1")
    assert "it is" in because
    assert TOKEN not in because


LIMITS: dict[str, tuple[str, dict[str, str], str]] = {
    "time": ("sleep 600", {"VERIFY_TIMEOUT_S": "1"}, "did not end within 1 s"),
    "output": ("head -c 100000000 /dev/zero", {}, "wrote more output than it may"),
    "itself": ("kill -9 $$", {}, "ended with code"),
    "processes": ("for i in $(seq 60); do sleep 60 & done; wait", {"MAX_PROCESSES": "20"}, "ran more processes than"),
    "memory": (ALLOCATES, {"MAX_MEMORY_BYTES": "200000000"}, "took more memory than it may"),
    "disk": (
        "head -c 50M /dev/zero > big; sleep 600",
        {"MAX_DISK_BYTES": "10000000"},
        "wrote more to disk than it may",
    ),
    "files": ("cd; touch $(seq 500); sleep 600", {"MAX_DISK_FILES": "300"}, "made more files than it may"),
    "deleted": (
        "head -c 50M /dev/zero > $TMPDIR/x; sleep 600 < $TMPDIR/x & rm $TMPDIR/x; wait",
        {"MAX_DISK_BYTES": "10000000"},
        "wrote more to disk than it may",
    ),
}
# What holds the disk is the same in each of them, and takes a second to see.
EVERYWHERE = ("time", "output", "itself", "processes", "memory")
ENDS = [(limit, sandbox) for sandbox in HELD for limit in EVERYWHERE] + [
    ("time", "none"), ("processes", "none"), ("disk", "bubblewrap"), ("files", "bubblewrap"), ("deleted", "landlock"),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "sandbox"), ENDS)
def test_what_does_not_come_to_a_green_end_is_refused_with_its_cause(tmp_path: Path, limit: str, sandbox: str) -> None:
    needs(sandbox)
    line, settings, cause = LIMITS[limit]
    assert cause in refused(tmp_path, line, SANDBOX=sandbox, **settings)


@pytest.mark.parametrize("sandbox", HELD)
def test_one_that_kills_all_that_it_may_ends_nobody_else(tmp_path: Path, sandbox: str) -> None:
    needs(sandbox)
    because = refused(tmp_path, "sleep 600 & kill -9 $PPID; kill -9 -1; exit 7", SANDBOX=sandbox)
    assert "ended with code 7" in because


def test_one_that_ends_what_watches_over_it_is_refused_and_nothing_of_it_lives(tmp_path: Path) -> None:
    because = refused(tmp_path, "setsid sleep 600 & kill -9 $PPID; sleep 600", SANDBOX="none")
    assert "ended what watched over it; nothing was pushed" in because


@pytest.mark.parametrize("sandbox", ["landlock", "none"])
def test_an_actor_that_is_told_to_stop_ends_a_verify_that_hangs(tmp_path: Path, sandbox: str) -> None:
    needs(sandbox)
    with place_of(tmp_path, "sh", "-c", "setsid sleep 600 & sleep 600", SANDBOX=sandbox) as place:
        before = place.repo.branches()
        actor = place.command("implement", "--json", steps=(write(NEW),))
        assert actor.stderr
        assert any('"step": "verify", "phase": "start"' in line for line in actor.stderr)
        actor.send_signal(signal.SIGTERM)
        _, errors = actor.communicate(timeout=30)
        assert (actor.returncode, place.repo.branches()) == (130, before)
    assert "the change is kept as" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("program", ["no-such-program", "./backend/no-such-program"])
@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_program_that_is_not_there_is_refused(tmp_path: Path, program: str, sandbox: str) -> None:
    with place_of(tmp_path, program, SANDBOX=sandbox) as place:
        assert "could not be run" in place.refused(write(NEW))


@pytest.mark.parametrize("sandbox", [*HELD, "none"])
def test_children_that_it_leaves_are_dead_and_do_not_hold_the_answer_up(tmp_path: Path, sandbox: str) -> None:
    needs(sandbox)
    with place_of(tmp_path, "sh", "-c", "setsid sleep 600 & sleep 600 & exit 0", SANDBOX=sandbox) as place:
        assert "Verified-By" in place.landed(write(NEW)).message


def test_what_it_writes_is_thrown_away_and_the_next_component_does_not_see_it(tmp_path: Path) -> None:
    writes = ["sh", "-c", "echo broken > backend/discount.py; touch stub/left"]
    with place_of(tmp_path, *writes, stub=["test", "!", "-e", "stub/left"]) as place:
        landed = place.landed(write(NEW), write("stub/new.py"))
    assert landed.changes == {NEW: "A", "stub/new.py": "A"}
    assert landed.read(NEW) == "x = 1"
    assert landed.message.count("Verified-By: ") == 2


TRIES = r"""
touch BASE/stray; cat BASE/state/kept
python3 -c 'import socket; socket.create_connection(("127.0.0.1", PORT), 3); print("reach" + "ed")'
env; echo the end; exit 1
"""


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_only_without_a_sandbox_it_writes_elsewhere_sees_the_state_and_reaches_the_host(
    tmp_path: Path, sandbox: str
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "kept").write_text("what is kept")
    with Place(tmp_path / "other", local=True) as other:
        port = other.server.url.rpartition(":")[2].partition("/")[0]
        because = refused(tmp_path, TRIES.replace("BASE", str(tmp_path)).replace("PORT", port), SANDBOX=sandbox)
    said = because.partition("its output ending `")[2]
    assert "the end" in said
    assert "GITHUB_TOKEN" not in said
    got_out = ((tmp_path / "stray").exists(), "what is kept" in said, "reached" in said)
    assert got_out == (sandbox == "none",) * 3


def test_a_file_that_git_ignores_is_not_there(tmp_path: Path) -> None:
    with place_of(tmp_path, "test", "-e", "backend/made.cache") as place:
        assert "ended with code 1" in place.refused(write(NEW), write("backend/made.cache"))


def test_a_component_that_is_not_touched_or_gone_is_not_verified(tmp_path: Path) -> None:
    with place_of(tmp_path, "true", stub=["false"]) as place:
        assert place.landed(write(NEW)).message.count("Verified-By") == 1
    with place_of(tmp_path / "gone", "true", stub=["false"]) as place:
        place.run(shell("rm -r stub"))
        assert "Verified-By" not in Landed(place.repo, BRANCH).message
        assert place.recorded("components-gone")


# What code of the repository can do to the directories of its run when nothing holds it.
MEDDLES = """
for git in ../../*.git; do
  printf '[url "file:///elsewhere"]\\n\\tinsteadOf = file://\\n' >> $git/config
  printf '[core]\\n\\tsshCommand = touch BASE/ran\\n' >> $git/config
  rm -rf $git/objects; echo ref: refs/heads/main > $git/HEAD; echo x > $git/index; echo x > $git/index.base
done
for file in ../../../*/tree/backend/discount.py; do echo '# of verify' >> $file; done
"""


def test_what_it_does_to_the_runs_git_directories_and_tree_changes_nothing_of_what_is_pushed(tmp_path: Path) -> None:
    line = MEDDLES.replace("BASE", str(tmp_path))
    with place_of(tmp_path, "sh", "-c", line, SANDBOX="none") as place:
        landed = place.landed(write(NEW), write("backend/deep/new.py", "x = 2\n"), shell("rm backend/price.py"))
    assert landed.changes == {NEW: "A", "backend/deep/new.py": "A", "backend/price.py": "D"}
    assert (landed.read(NEW), landed.read("backend/deep/new.py")) == ("x = 1", "x = 2")
    assert not (tmp_path / "ran").exists()
