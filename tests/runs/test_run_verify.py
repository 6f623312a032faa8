"""`components[].verify`: held, on what would be pushed, before it is pushed; only green lets a change through."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.place import BRANCH, TOKEN, Landed, Place, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR

NEW = "backend/discount.py"


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


@pytest.mark.parametrize(
    ("line", "settings", "cause"),
    [
        ("sleep 600", {"VERIFY_TIMEOUT_S": "1"}, "did not end within 1 s"),
        ("head -c 100000000 /dev/zero", {}, "wrote more output than it may"),
        ("kill -9 $$", {}, "ended with code"),
        ("for i in $(seq 60); do sleep 60 & done; wait", {"MAX_PROCESSES": "20"}, "ran more processes than it may"),
    ],
)
@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_what_does_not_come_to_a_green_end_is_refused_with_its_cause(
    tmp_path: Path, line: str, settings: dict[str, str], cause: str, sandbox: str
) -> None:
    assert cause in refused(tmp_path, line, SANDBOX=sandbox, **settings)


@pytest.mark.parametrize("program", ["no-such-program", "./backend/no-such-program"])
@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_program_that_is_not_there_is_refused(tmp_path: Path, program: str, sandbox: str) -> None:
    with place_of(tmp_path, program, SANDBOX=sandbox) as place:
        assert "could not be run" in place.refused(write(NEW))


def test_children_that_it_leaves_are_dead_and_do_not_hold_the_answer_up(tmp_path: Path) -> None:
    with place_of(tmp_path, "sh", "-c", "setsid sleep 600 & exit 0") as place:
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
