"""A repository's own configuration is told once a run, at both doors, and does not act."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.model import Request, ScriptedModel, Turn, say, use
from support.model import Step as Said
from support.place import Landed, Place, Step, shell, task, write
from support.repos import CAPABILITY_FILES
from support.serving import Serving, real_environment

NEW = "backend/discount.py"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"
ATTRIBUTES = "*.psd filter=lfs diff=lfs merge=lfs -text\n*.evil filter=evil\n"


def armed(marks: Path) -> dict[str, str | bytes]:
    """A repository with every kind of configuration; what acts leaves a file in `marks`."""
    mark = f"touch {marks}/"
    hook = [{"matcher": "*", "hooks": [{"type": "command", "command": f"{mark}hook"}]}]
    given = {
        "hooks": dict.fromkeys(("SessionStart", "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"), hook),
        "apiKeyHelper": f"{mark}helper",
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
    }
    server = {"mcpServers": {"s": {"command": "touch", "args": [f"{marks}/server"]}}}
    return {
        **CAPABILITY_FILES,
        ".claude/settings.json": json.dumps(given),
        "backend/.claude/settings.json": json.dumps(given),
        ".mcp.json": json.dumps(server),
        "backend/.mcp.json": json.dumps(server),
        ".husky/pre-commit": f"#!/bin/sh\n{mark}husky\n",
        ".gitattributes": ATTRIBUTES,
        "backend/x.evil": "as it is committed\n",
        "backend/logo.psd": POINTER,
    }


KINDS = [
    "claude-files", "claude-hooks", "claude-helpers", "mcp-servers", "git-filters", "git-hooks", "lfs-pointers",
]  # fmt: skip


@pytest.mark.parametrize("door", ["implement", "assess"])
def test_each_kind_of_configuration_is_told_once_at_both_doors(tmp_path: Path, door: str) -> None:
    with Place(tmp_path / "place", files=armed(tmp_path), local=True) as place:
        if door == "assess":
            place.assess({"answer": {"feasible": True}})
        else:
            place.landed(write(NEW))
        [record] = place.recorded("repository-configuration")
        told: Mapping[str, Any] = {one["kind"]: one for one in record["found"]}
        assert list(told) == KINDS
        assert told["claude-hooks"]["paths"] == [".claude/settings.json", "backend/.claude/settings.json"]
        assert told["lfs-pointers"]["paths"] == ["backend/logo.psd"]
        assert all(one["becomes"].startswith(("inert: ", "handled: ")) for one in told.values())


def test_a_repository_without_any_is_not_spoken_of(tmp_path: Path) -> None:
    with Place(tmp_path, local=True) as place:
        place.landed(write(NEW))
        assert place.recorded("repository-configuration") == []


def test_many_paths_of_a_kind_are_counted_and_some_of_them_shown(tmp_path: Path) -> None:
    files = {**CAPABILITY_FILES, **{f".claude/commands/c{n}\n.md": "x" for n in range(50)}}
    with Place(tmp_path, files=files, local=True) as place:
        place.landed(write(NEW))
        [one] = place.recorded("repository-configuration")[0]["found"]
        assert (one["count"], len(one["paths"])) == (50, 20)
        assert one["paths"][0] == ".claude/commands/c0\\n.md"


def test_a_submodule_is_told_and_stays_at_its_commit(tmp_path: Path) -> None:
    with Place(tmp_path, local=True) as place:
        stream = f"commit refs/heads/main\ncommitter A <a@b.c> 1767323045 +0000\ndata 1\nx\nfrom {place.repo.sha()}\n"
        stream += f"M 160000 {'1' * 40} backend/sub\n"
        place.repo.git("fast-import", "--quiet", "--force", stdin=stream.encode())
        assert place.landed(write(NEW)).changes == {NEW: "A"}
        [one] = place.recorded("repository-configuration")[0]["found"]
        assert (one["kind"], one["paths"]) == ("submodules", ["backend/sub"])


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (write(NEW), {NEW: "A"}),
        (shell(f"touch backend/logo.psd; cat backend/logo.psd; echo x > {NEW}"), {NEW: "A"}),
        (write("backend/logo.psd", "the picture itself"), {"backend/logo.psd": "M"}),
        (shell("rm backend/logo.psd"), {"backend/logo.psd": "D"}),
        (write("backend/new.psd", POINTER), {"backend/new.psd": "A"}),
        (write("backend/x.evil", "new\n"), {"backend/x.evil": "M"}),
    ],
)
def test_a_file_behind_a_filter_is_what_is_committed_of_it(tmp_path: Path, step: Step, changes: dict[str, str]) -> None:
    with Place(tmp_path / "place", files=armed(tmp_path), local=True) as place:
        landed = place.landed(step)
        assert landed.changes == changes
        assert place.repo.read("backend/logo.psd") == POINTER.removesuffix("\n")


def test_a_repositorys_configuration_is_inert_with_the_real_command_line(tmp_path: Path) -> None:
    """Also below a component, where the session works; a commit of its own runs no hook of the repository."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def wrote(request: Request) -> Turn:
        return use("Write", file_path=f"{request.cwd}/{NEW}", content="x = 1\n")

    git = "git add -A && git commit -q -m own && git checkout -q -- . && cat backend/x.evil backend/logo.psd"
    steps: list[Said] = [
        use("Bash", command="cd backend && ls -a; cd .."),
        wrote,
        use("Bash", command=git),
        say("done"),
    ]
    with ScriptedModel(steps) as model, Place(tmp_path / "place", files=armed(marks)) as place:
        with Serving(place.folder, real_environment(place, model)) as actor:
            status, body = actor.call("implement-task", task())
        assert (status, body["accepted"]) == (200, True)
        assert Landed(place.repo, "impl/TASK-1").changes == {NEW: "A"}
        assert len(actor.recorded("repository-configuration")) == 1
    assert list(marks.iterdir()) == []
    assert "as it is committed" in "\n".join(model.asked[-1].messages)
