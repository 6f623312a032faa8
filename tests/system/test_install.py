"""The command that mends a missing extra, for each way in which this package may have been installed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.system.install import install

RELEASE = "foundry-implementation-actor[gate]>=0.8"


def site(tmp_path: Path, origin: str | None) -> list[str]:
    """A path of packages with this one on it, as an installer leaves it; `origin` is what it wrote of where from."""
    for name in ("empty", "foundry_implementation_actor-0.8.0.dist-info"):
        (tmp_path / "site" / name).mkdir(parents=True)
    if origin is not None:
        (tmp_path / "site/foundry_implementation_actor-0.8.0.dist-info/direct_url.json").write_text(origin)
    return [str(tmp_path / "site/empty"), str(tmp_path / "site")]


def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return folder


def words(command: str) -> list[str]:
    """What follows `python -m pip install`."""
    argv = shlex.split(command)
    assert argv[:4] == [sys.executable, "-m", "pip", "install"]
    return argv[4:]


@pytest.mark.parametrize(("kind", "option"), [({"editable": True}, ["--editable"]), ({}, [])])
def test_what_was_installed_from_a_folder_is_installed_from_it_again(
    tmp_path: Path, kind: dict[str, Any], option: list[str]
) -> None:
    folder = checkout(tmp_path)
    path = site(tmp_path, json.dumps({"url": folder.as_uri(), "dir_info": kind}))
    assert words(install("gate", path)) == [*option, f"{folder}[gate]"]


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "{}",
        '{"url": "file:///nowhere/to/be/found", "dir_info": {"editable": true}}',
        '{"url": "file:///dist/actor-0.8.0-py3-none-any.whl", "archive_info": {}}',
        '{"url": "https://forge.example/actor.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}',
    ],
)
def test_everything_else_is_mended_with_a_release(tmp_path: Path, origin: str | None) -> None:
    assert words(install("gate", site(tmp_path, origin))) == [RELEASE]


def test_what_is_not_installed_at_all_is_mended_with_a_release(tmp_path: Path) -> None:
    assert words(install("gate", [str(tmp_path), str(tmp_path / "nowhere")])) == [RELEASE]


def test_pip_takes_the_command_that_is_named_here() -> None:
    # Without its dependencies and with the build tools that are there, it needs no package index.
    offline = ["--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    done = subprocess.run([*shlex.split(install("gate")), *offline], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
