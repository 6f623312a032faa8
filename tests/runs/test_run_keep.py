"""Work that was paid for and not pushed is kept: as a patch that applies, and as nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.workspace.artifacts import MOST_KEPT
from support.model import Request, ScriptedModel, Turn, text, turn, use
from support.place import BRANCH, TOKEN, Place, shell, write
from support.processes import ends
from support.repos import Repo, git
from support.serving import real_environment

NEW = "backend/discount.py"
NAME = r"the change is kept as (TASK-1-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z\.patch)"
MB = 1024 * 1024


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Without a sandbox, so that a session can be as bad as one can be."""
    with Place(tmp_path / "place", local=True, settings={"SANDBOX": "none"}) as place:
        yield place


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Place]:
    """With the strongest sandbox of this host."""
    with Place(tmp_path / "place", local=True, settings={"SANDBOX": "auto"}) as place:
        yield place


def kept(place: Place) -> list[Path]:
    folder = place.state / "artifacts"
    return sorted(folder.glob("*.patch")) if folder.is_dir() else []


def stopped(place: Place, *steps: dict[str, Any], **settings: str) -> str:
    """What a caller is told of a session that is stopped; nothing of it is on the forge."""
    with pytest.raises(ActorError) as raised:
        place.run(*steps, settings=settings)
    assert BRANCH not in place.repo.branches()
    return str(raised.value)


def artifact(place: Place, told: str) -> tuple[Path, dict[str, Any]]:
    """The one patch, which is the one that the caller was told of, and its record."""
    [patch] = kept(place)
    found = re.search(NAME, told)
    assert found, told
    assert found[1] == patch.name
    return patch, json.loads(patch.with_suffix(".json").read_text())


def applied(place: Place, patch: Path, tree: Path) -> Repo:
    """A clone of the repository's base with the patch on it."""
    git(tree.parent, "clone", "--quiet", str(place.repo.path), str(tree))
    repo = Repo(tree)
    repo.git("apply", "--index", str(patch))
    return repo


# --- every way to be stopped -----------------------------------------------------------------------


SLEEP = shell("setsid sleep 600 & sleep 600")
LIMITS: dict[str, tuple[dict[str, str], list[dict[str, Any]], str]] = {
    "turns": ({"MAX_TURNS": "2"}, [{"say": "1"}, {"say": "2"}], "raise MAX_TURNS (now 2)"),
    "clock": ({"SESSION_TIMEOUT_S": "1"}, [SLEEP], "raise SESSION_TIMEOUT_S (now 1)"),
    "silent": ({"SILENCE_TIMEOUT_S": "1"}, [SLEEP], "raise SILENCE_TIMEOUT_S (now 1)"),
    "money": (
        {"MAX_COST_USD": "0.5"},
        [
            {"raw": '{"type":"assistant","message":{"id":"m","usage":{"input_tokens":999999}}}\n'},
            SLEEP,
        ],
        "raise MAX_COST_USD (now 0.5)",
    ),
    "output": ({"MAX_OUTPUT_BYTES": "90000"}, [{"flood": 100_000}, SLEEP], "raise MAX_OUTPUT_BYTES (now 90000)"),
    "disk": (
        {"MAX_DISK_BYTES": "9000000"},
        [shell("head -c 20000000 /dev/zero > ~/big; sleep 600")],
        "raise MAX_DISK_BYTES (now 9000000)",
    ),
    "files": (
        {"MAX_DISK_FILES": "300"},
        [shell("cd ~; for i in $(seq 400); do : > $i; done; sleep 600")],
        "raise MAX_DISK_FILES (now 300)",
    ),
    "processes": (
        {"MAX_PROCESSES": "20"},
        [shell("for i in $(seq 40); do setsid sleep 600 & done; wait")],
        "raise MAX_PROCESSES (now 20)",
    ),
    "memory": (
        {"MAX_MEMORY_BYTES": "90000000"},
        [shell("exec python3 -I -S -c \"x = b'x' * 200_000_000; import signal; signal.pause()\"")],
        "raise MAX_MEMORY_BYTES (now 90000000)",
    ),
    "crashed": ({}, [{"exit": 3}], "ask again"),
    "provider": ({}, [{"result": {"is_error": True, "api_error_status": 529, "text": "overloaded"}}], "credentials"),
}


@pytest.mark.parametrize("cause", LIMITS)
def test_what_a_stopped_session_has_done_is_kept_and_the_caller_is_told(
    guarded: Place, cause: str, tmp_path: Path
) -> None:
    settings, steps, advice = LIMITS[cause]
    told = stopped(guarded, write(NEW), *steps, **settings)
    assert advice in told
    assert "nothing of it was pushed" in told
    patch, record = artifact(guarded, told)
    assert (record["cause"], record["task_id"], record["branch"]) == (cause, "TASK-1", BRANCH)
    assert record["base"] == guarded.repo.sha()
    assert (record["files"], record["left_out"]) == (1, {})
    assert applied(guarded, patch, tmp_path / "clone").git("status", "--porcelain") == f"A  {NEW}"
    assert guarded.recorded("session-end")[0]["cause"] == cause
    assert guarded.recorded("kept")[0]["path"] == str(patch)


def test_a_patch_is_for_the_actors_user_only(place: Place) -> None:
    told = stopped(place, write(NEW), {"exit": 3})
    patch, _ = artifact(place, told)
    found = [patch.parent, patch, patch.with_suffix(".json")]
    assert [stat.S_IMODE(one.stat().st_mode) for one in found] == [0o700, 0o600, 0o600]
    assert sorted(patch.parent.iterdir()) == sorted(found[1:])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_an_interrupted_session_has_done_is_kept(place: Place, tmp_path: Path, number: int) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    actor = place.command("implement", steps=(write(NEW), shell(f"echo $$ > {pipe}; sleep 600")))
    session = int(pipe.read_text())
    actor.send_signal(number)
    _, errors = actor.communicate(timeout=60)
    assert actor.returncode == 130
    assert artifact(place, errors)[1]["cause"] == "stopped"
    assert ends(session)


def test_an_actor_that_is_killed_at_a_limit_leaves_no_process(place: Place, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    many = f"for i in $(seq 15); do setsid sleep 600 >/dev/null & echo $!; done > {pipe}"
    steps = (write(NEW), shell(f"{many}; head -c 9000000 /dev/zero > big; wait"))
    actor = place.command("implement", steps=steps, MAX_PROCESSES="200", MAX_DISK_BYTES="900000000")
    sessions = [int(word) for word in pipe.read_text().split()]
    actor.kill()
    actor.communicate(timeout=60)
    assert len(sessions) == 15
    assert all(ends(pid) for pid in sessions)
    assert place.landed(write(NEW)).changes == {NEW: "A"}


BIG = "head -c 60000000 /dev/zero > $HOME/big; sleep 600"
REAL: dict[str, tuple[dict[str, str], Turn, str]] = {
    "turns": ({"MAX_TURNS": "2"}, use("Bash", command="true"), "MAX_TURNS (now 2)"),
    "money": ({"MAX_COST_USD": "0.9"}, turn(text("x"), input_tokens=400_000), "MAX_COST_USD (now 0.9)"),
    "disk": ({"MAX_DISK_BYTES": "30000000"}, use("Bash", command=BIG), "MAX_DISK_BYTES (now 30000000)"),
}


@pytest.mark.parametrize("cause", REAL)
def test_what_the_real_command_line_has_done_is_kept_at(guarded: Place, cause: str, tmp_path: Path) -> None:
    settings, then, advice = REAL[cause]
    with ScriptedModel([_writes], then=then) as model:
        environment = real_environment(guarded, model, **settings)
        engine = ClaudeCodeEngine(guarded.config, settings=Settings.from_env(environment), sink=guarded._keep)
        with pytest.raises(ActorError, match=re.escape(advice)) as raised:
            guarded.ask(engine)
    patch, record = artifact(guarded, str(raised.value))
    assert record["cause"] == cause
    assert applied(guarded, patch, tmp_path / "clone").git("status", "--porcelain") == f"A  {NEW}"
    assert BRANCH not in guarded.repo.branches()


def _writes(request: Request) -> Turn:
    return use("Write", file_path=f"{request.cwd}/{NEW}", content="RATE = 1\n")


# --- every way to be refused -----------------------------------------------------------------------


def test_what_is_refused_at_the_boundary_is_kept_without_what_lies_outside(place: Place, tmp_path: Path) -> None:
    told = place.refused(write(NEW), write("docs/outside.md"))
    patch, record = artifact(place, told)
    assert record["left_out"] == {"docs/outside.md": "is outside of the component roots"}
    assert applied(place, patch, tmp_path / "clone").git("status", "--porcelain") == f"A  {NEW}"
    assert place.recorded("kept")[0]["cause"] == "refused"


def test_a_change_of_too_many_files_is_kept_whole(place: Place) -> None:
    told = place.refused(shell("for i in 1 2 3; do echo $i > backend/$i; done"), settings={"MAX_CHANGED_FILES": "2"})
    assert "MAX_CHANGED_FILES=2" in told
    assert artifact(place, told)[1]["files"] == 3


def test_of_a_change_that_is_too_large_what_fits_is_kept_and_the_rest_is_named(place: Place) -> None:
    line = "head -c 50000 /dev/urandom > backend/large; truncate -s 1T backend/hole"
    told = place.refused(write(NEW), shell(line), settings={"MAX_PATCH_BYTES": "40000"})
    assert "MAX_PATCH_BYTES=40,000" in told
    assert told.endswith(", without 2 of its files")
    _, record = artifact(place, told)
    assert record["files"] == 1
    assert record["left_out"] == {
        "backend/hole": f"is too large to be kept: {2**40:,} bytes",
        "backend/large": "is too large to be kept: 50,000 bytes",
    }


def test_what_the_forge_declines_is_kept(place: Place) -> None:
    hook = place.repo.path / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho not today >&2; exit 1\n")
    hook.chmod(0o755)
    told = place.refused(write(NEW))
    assert "not today" in told
    assert artifact(place, told)[1]["files"] == 1


@pytest.mark.parametrize("steps", [[], [write("docs/outside.md")]])
def test_a_session_that_changed_nothing_under_the_roots_leaves_no_patch(place: Place, steps: list[Any]) -> None:
    assert "kept as" not in place.refused(*steps)
    assert not kept(place)
    assert not place.recorded("not-kept")


def test_what_was_pushed_is_not_kept(place: Place) -> None:
    place.landed(write(NEW))
    assert not kept(place)


# --- what is in a patch ----------------------------------------------------------------------------


def test_a_patch_brings_back_every_kind_of_change(place: Place, tmp_path: Path) -> None:
    odd = 'backend/é "quoted"\\n\n.txt'
    lines = (
        "cd backend; head -c 3000 /dev/urandom > random.bin; printf 'a\\r\\nb' > crlf.txt; : > empty",
        "printf '#!/bin/sh\\n' > run; chmod 755 run; ln -s price.py link; rm test_price.py; mv price.py moved.py",
        "rm -r ../stub; mkdir -p deep/er; echo x > deep/er/file; printf '%s' 'FROM x' > Dockerfile",
        f"cp -a . {tmp_path}/wanted",
    )
    steps = [write(odd, "odd\n"), *(shell(line if line.startswith("cd") else f"cd backend; {line}") for line in lines)]
    told = stopped(place, *steps, {"exit": 3})
    patch, record = artifact(place, told)
    assert record["left_out"] == {}
    clone = applied(place, patch, tmp_path / "clone")

    def content(folder: Path) -> dict[str, tuple[int, bytes]]:
        found = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
        return {
            str(path.relative_to(folder)): (
                path.lstat().st_mode & 0o100111,
                os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes(),
            )
            for path in found
        }

    assert content(clone.path / "backend") == content(tmp_path / "wanted")
    assert not (clone.path / "stub").exists()
    assert odd.removeprefix("backend/") in content(tmp_path / "wanted")


def test_a_file_with_a_secret_is_left_out_and_said(place: Place, tmp_path: Path) -> None:
    told = stopped(
        place, write(NEW), write("backend/notes.txt", f"it is {TOKEN}\n"), write(f"backend/{TOKEN}"), {"exit": 3}
    )
    patch, record = artifact(place, told)
    assert TOKEN not in patch.read_text() + patch.with_suffix(".json").read_text()
    assert set(record["left_out"].values()) == {"holds a secret of the actor"}
    assert "backend/notes.txt" in record["left_out"]
    assert applied(place, patch, tmp_path / "clone").git("status", "--porcelain") == f"A  {NEW}"


def test_a_change_that_is_nothing_but_a_secret_is_not_kept(place: Place) -> None:
    told = stopped(place, write(NEW, TOKEN), {"exit": 3})
    assert "kept as" not in told
    assert not kept(place)
    assert "holds a secret of the actor" in place.recorded("not-kept")[0]["error"]


IRREGULAR = "is a pipe, a socket or a device"
REPOSITORY = "is a git repository of its own"
COMMIT = "git -c user.name=a -c user.email=b commit -q --allow-empty -m x"
ARMED = "git config {} 'touch HIT'"
SETTINGS = ("core.fsmonitor", "diff.external", "filter.evil.clean", "diff.evil.textconv")
DEEP = "import os\nfor _ in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('f', 'w')"
# What a session leaves, and what of it is in no patch.
HOSTILE: dict[str, tuple[str, dict[str, str]]] = {
    "pipes for rules": (
        "mkfifo .gitignore backend/.gitattributes",
        {".gitignore": IRREGULAR, "backend/.gitattributes": IRREGULAR},
    ),
    "a pipe for a file": (
        "rm backend/Dockerfile; mkfifo backend/Dockerfile backend/pipe",
        {"backend/Dockerfile": IRREGULAR},
    ),
    "a repository inside": (f"git init -q backend/sub; cd backend/sub; {COMMIT}", {"backend/sub/": REPOSITORY}),
    "an empty repository inside": (
        "git init -q backend/sub; echo x > backend/sub/file",
        {"backend/sub/": REPOSITORY},
    ),
    "links out": ("ln -s / backend/root; ln -s . backend/circle; ln -s /dev/zero backend/zero", {}),
    "a root that is a link": ("rm -r stub; ln -s /etc stub", {"stub": "is outside of the component roots"}),
    "a git directory that is armed": (
        "; ".join([*map(ARMED.format, SETTINGS), "echo '* filter=evil diff=evil' > backend/.gitattributes"]),
        {},
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_tree_holds_nothing_up_and_what_can_be_kept_is(place: Place, what: str, tmp_path: Path) -> None:
    line, left_out = HOSTILE[what]
    started = time.monotonic()
    told = stopped(place, write(NEW), shell(line), {"exit": 3})
    assert time.monotonic() - started < 20
    patch, record = artifact(place, told)
    assert record["left_out"] == left_out
    assert NEW in applied(place, patch, tmp_path / "clone").git("diff", "--cached", "--name-only").splitlines()
    assert not list(place.base.rglob("HIT"))


def test_of_a_tree_too_deep_for_a_path_the_rest_is_kept(place: Place) -> None:
    told = stopped(place, write(NEW), shell(f'cd backend; python3 -I -S -c "{DEEP}"'), {"exit": 3})
    _, record = artifact(place, told)
    assert record["files"] == 1
    assert all("cannot be read" in why for why in record["left_out"].values())
    assert record["left_out"]


def test_a_git_that_does_not_come_to_an_end_is_not_waited_for(place: Place, tmp_path: Path) -> None:
    pipe, real = tmp_path / "pipe", shutil.which("git")
    os.mkfifo(pipe)
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in *--others*) sleep 600;; esac\nexec {real} "$@"\n')
    program.chmod(0o755)
    steps = (write(NEW), shell(f"echo $$ > {pipe}; sleep 600"))
    actor = place.command("implement", "--json", steps=steps, PATH=f"{program.parent}:{os.environ['PATH']}")
    pipe.read_text()
    actor.send_signal(signal.SIGINT)
    _, errors = actor.communicate(timeout=15)
    assert actor.returncode == 130
    assert "it took longer than 4 s" in errors
    assert not kept(place)


@pytest.mark.parametrize("line", ["rm -rf $PWD", "rm -rf $PWD; ln -s /etc $PWD", "rm -rf backend; mkfifo backend"])
def test_a_tree_that_is_gone_changes_nothing_about_the_answer(place: Place, line: str) -> None:
    told = stopped(place, write(NEW), shell(line), {"exit": 3})
    assert "exit code 3" in told


# --- where it is kept ------------------------------------------------------------------------------


def test_a_patch_that_cannot_be_kept_changes_nothing_about_the_answer(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    for where in ("file", "link", "file/below"):
        told = stopped(place, write(NEW), {"exit": 3}, RUN_ARTIFACTS=str(tmp_path / where))
        assert "exit code 3" in told
        assert "kept as" not in told
    assert len(place.recorded("not-kept")) == 3
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_oldest_go_and_what_is_not_the_actors_own_stays(place: Place) -> None:
    folder = place.state / "artifacts"
    folder.mkdir(parents=True)
    for number in range(MOST_KEPT + 5):
        for suffix in ("patch", "json"):
            path = folder / f"T{number}-20260101T000000.{number:06}Z.{suffix}"
            path.write_text("old")
            os.utime(path, (number, number))
    (folder / "mine.patch").write_text("mine")
    told = stopped(place, write(NEW), {"exit": 3})
    found = {path.name for path in kept(place)}
    assert len(found) == MOST_KEPT + 1
    newest = re.search(NAME, told)
    assert newest
    assert {"mine.patch", newest[1]} <= found
    assert not list(folder.glob("T5-*"))
    assert len(list(folder.glob("T6-*"))) == 2
