"""A mirror that a session, a full disk or a crash has spoilt is made again; nothing in it steers git."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.git import Git, Remote
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.workspace.mirror import Mirror, Refs, cleaned, mirror_of, refresh
from support.repos import git, make_repo

BRANCH = "impl/T"


class Place:
    """A repository, a mirror of it, and the records of its refreshing."""

    def __init__(self, base: Path) -> None:
        self.state = base / "state"
        self.origin = make_repo(base / "tree", {"a": "1\n"}, tags=["v1"]).bare(base / "origin.git")
        self.records: list[str] = []

    def mirror(self) -> Mirror:
        plain = Git(self.state, {"PATH": os.environ["PATH"]}, 30.0)
        return mirror_of(self.state, Remote(f"file://{self.origin.path}"), plain)

    def refresh(self) -> Refs:
        return refresh(self.mirror(), BRANCH, Journal(sink=lambda line, _: self.records.append(line)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.refresh()
    git(place.mirror().git.git_dir, "repack", "-adq")
    return place


def emptied(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def into(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def replaced_by_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked_elsewhere(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


SPOILT: dict[str, Callable[[Path], object]] = {
    "an empty HEAD": lambda mirror: emptied(mirror / "HEAD"),
    "a HEAD that is a folder": lambda mirror: replaced_by_a_folder(mirror / "HEAD"),
    "an empty ref": lambda mirror: into(mirror / "refs/actor/head", ""),
    "an empty tag": lambda mirror: into(mirror / "refs/tags/v1", ""),
    "a ref to nothing": lambda mirror: into(mirror / "refs/actor/head", "1" * 40 + "\n"),
    "no objects": lambda mirror: shutil.rmtree(mirror / "objects"),
    "objects that are a file": lambda mirror: replaced_by_a_file(mirror / "objects"),
    "objects that are elsewhere": lambda mirror: linked_elsewhere(mirror / "objects"),
    "an empty pack index": lambda mirror: emptied(next((mirror / "objects/pack").glob("*.idx"))),
    "an empty pack": lambda mirror: emptied(next((mirror / "objects/pack").glob("*.pack"))),
    "refs that are a file": lambda mirror: replaced_by_a_file(mirror / "refs"),
    "packed refs that are none": lambda mirror: into(mirror / "packed-refs", "nothing of the kind\n"),
    "a configuration that is none": lambda mirror: into(mirror / "config", "[nothing"),
    "a lock of a killed git": lambda mirror: into(mirror / "refs/actor/head.lock", ""),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_mirror_that_is_spoilt_is_as_good_as_new_the_next_time(place: Place, what: str) -> None:
    mirror = place.mirror()
    SPOILT[what](mirror.git.git_dir)
    place.origin.add_commit("main", {"b": "2\n"})
    assert place.refresh() == Refs(place.origin.sha("main"), "", {"refs/tags/v1": place.origin.sha("v1")})
    assert mirror.git.attempt("fsck", "--full").ok
    assert sorted(entry.suffix for entry in mirror.git.git_dir.parent.iterdir()) == [".git", ".lock"]


def test_that_a_mirror_was_made_again_is_told(place: Place) -> None:
    emptied(place.mirror().git.git_dir / "HEAD")
    place.refresh()
    [record] = map(json.loads, place.records)
    assert record["step"] == "mirror-made-again"
    assert "not a git repository" in record["error"]


def test_a_mirror_is_kept_when_it_is_the_remote_that_cannot_be_read(place: Place) -> None:
    mirror = place.mirror()
    kept = {path: path.read_bytes() for path in (mirror.objects / "pack").iterdir()}
    place.origin.path.rename(place.origin.path.with_name("gone"))
    with pytest.raises(ActorError, match="there is no such repository"):
        place.refresh()
    assert {path: path.read_bytes() for path in (mirror.objects / "pack").iterdir()} == kept
    assert not place.records


STEERED = {
    "config": '[url "file:///nowhere/"]\n\tinsteadOf = file://\n[http]\n\tproxy = http://127.0.0.1:1\n',
    "config.worktree": "[core]\n\tbare = false\n",
    "commondir": "/nowhere\n",
    "shallow": "1" * 40 + "\n",
    "info/attributes": "* filter=x\n",
    "info/grafts": "1" * 40 + "\n",
    "objects/info/alternates": "/nowhere\n",
    "hooks/reference-transaction": "#!/bin/sh\nexit 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", STEERED)
@pytest.mark.parametrize("when", ["before a fetch", "before another verb"])
def test_nothing_that_a_session_writes_into_a_mirror_steers_git(place: Place, name: str, when: str) -> None:
    mirror = place.mirror()
    before = (mirror.git.git_dir / "config").read_bytes()
    into(mirror.git.git_dir / name, STEERED[name])
    if when == "before a fetch":
        refresh(mirror, BRANCH, Journal())
    else:
        cleaned(mirror)
    assert (mirror.git.git_dir / "config").read_bytes() == before
    assert name == "config" or not (mirror.git.git_dir / name).exists()


@pytest.mark.parametrize("known", [False, True])
def test_a_shallow_repository_on_the_forge_is_an_unfit_host_that_says_so(tmp_path: Path, known: bool) -> None:
    place = Place(tmp_path)
    place.origin.add_commit("main", {"b": "2\n"})
    if known:
        place.refresh()
    place.origin.add_commit("main", {"c": "3\n"})
    whole = place.origin.path.rename(tmp_path / "whole.git")
    git(tmp_path, "clone", "-q", "--mirror", "--depth", "1", f"file://{whole}", str(place.origin.path))
    with pytest.raises(ActorError, match="is shallow, so there is no whole history") as raised:
        place.refresh()
    assert raised.value.code is Code.UNFIT
