"""What a repository brings along for other programs is found by kind, and cheaply."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.change import GITLINK, LINK, REGULAR
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.configuration import Entry, look
from support.repos import Repo, make_repo

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"


def found(repo: Repo) -> dict[str, list[str]]:
    """The kinds and their paths, of a repository as its own git has checked it out."""
    records = (record.partition("\t") for record in repo.git("ls-files", "--stage", "-z").split("\0")[:-1])
    entries = [Entry(meta.split()[0], path) for meta, _, path in records]
    git = Git(repo.path / ".git", {"PATH": os.environ["PATH"]}, 30.0, work_tree=repo.path)
    return {one.kind: list(one.paths) for one in look(git, repo.path, entries)}


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({".claude/settings.json": "{}"}, {"claude-files"}),
        ({"deep/.claude/skills/x/SKILL.md": "x"}, {"claude-files"}),
        ({".claude/settings.json": json.dumps({"hooks": {"Stop": []}})}, {"claude-files", "claude-hooks"}),
        ({".claude/settings.local.json": '{"apiKeyHelper": "x"}'}, {"claude-files", "claude-helpers"}),
        ({".claude/settings.json": "{" * 100_000}, {"claude-files"}),
        ({".claude/settings.json": "[1]"}, {"claude-files"}),
        ({".claude/settings.json": b"\xff\xfe"}, {"claude-files"}),
        ({".mcp.json": "{}", "a/.mcp.json": "{}"}, {"mcp-servers"}),
        ({".husky/pre-commit": "x"}, {"git-hooks"}),
        ({".githooks/pre-push": "x"}, {"git-hooks"}),
        ({"lefthook.yml": "x"}, {"git-hooks"}),
        ({".gitattributes": "*.bin filter=evil\n", "a.bin": "x"}, {"git-filters"}),
        ({".gitattributes": "*.bin filter=evil\n", "a.txt": "x"}, set()),
        ({".gitattributes": "*.txt text eol=lf # no filter\n", "a.txt": "x"}, set()),
        ({".gitattributes": "*.psd filter=lfs diff=lfs\n", "a.psd": POINTER}, {"git-filters", "lfs-pointers"}),
        ({".gitattributes": "*.psd filter=lfs diff=lfs\n", "a.psd": "whole"}, {"git-filters"}),
        ({"a.psd": POINTER, "claude/settings.json": "{}", "x.claude": "", "hooks/a": "", "mcp.json": "{}"}, set()),
    ],
)
def test_each_kind_is_told_by_its_paths(tmp_path: Path, files: dict[str, str | bytes], kinds: set[str]) -> None:
    told = found(make_repo(tmp_path / "r", files))
    assert set(told) == kinds
    assert all(path in files for paths in told.values() for path in paths)


def test_links_in_the_place_of_what_the_actor_writes_are_told(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a": "x"})
    (repo.path / "CLAUDE.md").symlink_to("/etc/passwd")
    (repo.path / ".foundry").symlink_to("..")
    (repo.path / ".claude").symlink_to("/etc")
    repo.commit()
    told = found(repo)
    assert told == {"claude-files": [".claude"], "claude-md-link": ["CLAUDE.md"], "foundry-link": [".foundry"]}


def test_settings_behind_a_link_out_of_the_repository_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text('{"hooks": {"Stop": []}}')
    repo = make_repo(tmp_path / "r", {"a": "x"})
    (repo.path / ".claude").mkdir()
    (repo.path / ".claude/settings.json").symlink_to(tmp_path / "outside.json")
    repo.commit()
    assert set(found(repo)) == {"claude-files"}


def test_every_kind_says_what_becomes_of_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {".mcp.json": "{}", ".husky/x": ""})
    git = Git(repo.path / ".git", {"PATH": os.environ["PATH"]}, 30.0, work_tree=repo.path)
    entries = [Entry(REGULAR, ".mcp.json"), Entry(REGULAR, ".husky/x"), Entry(GITLINK, "sub"), Entry(LINK, "CLAUDE.md")]
    told = look(git, repo.path, entries)
    assert [one.kind for one in told] == ["mcp-servers", "claude-md-link", "git-hooks", "submodules"]
    assert {one.becomes.partition(":")[0] for one in told} == {"inert", "handled"}


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), max_size=5))
def test_any_path_is_looked_at(paths: list[str]) -> None:
    git = Git(Path("/nonexistent"), {}, 1.0)
    look(git, Path("/nonexistent"), [Entry(REGULAR, path) for path in paths])


def test_a_large_repository_costs_no_process_and_little_time() -> None:
    entries = [Entry(REGULAR, f"some/folder/of/it/{n % 200}/file_{n}.py") for n in range(20_000)]
    started = time.process_time()
    assert look(Git(Path("/nonexistent"), {}, 1.0), Path("/nonexistent"), entries) == ()
    assert time.process_time() - started < 0.5
