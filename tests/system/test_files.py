"""Files below a tree that somebody else has filled: never through a link, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import (
    LinkInTheWayError,
    locked,
    read_below,
    remove_tree,
    try_lock,
    writable,
    write_atomically,
    write_below,
)

NAME = st.sampled_from(["a", "b", "in", "out", "file"])
PATH = st.lists(NAME, min_size=1, max_size=4).map("/".join)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=60, deadline=None)
@given(path=PATH, links=st.dictionaries(PATH, st.sampled_from(["/", "..", "../outside", "a", ".", "../../outside"])))
def test_whatever_links_a_tree_holds_nothing_outside_of_it_is_written(path: str, links: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as base:
        tree, outside = Path(base, "tree"), Path(base, "outside")
        for folder in (tree / "in", outside / "a/b/in/out"):
            folder.mkdir(parents=True)
        (outside / "file").write_bytes(b"kept")
        for name, target in links.items():
            with contextlib.suppress(OSError):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).symlink_to(str(outside) + target if target == "/" else target)
        before, beside = snapshot(outside), sorted(Path(base).iterdir())
        with contextlib.suppress(LinkInTheWayError, IsADirectoryError):
            write_below(tree, path, b"written")
            assert (tree / path).read_bytes() == b"written"
            assert not (tree / path).is_symlink()
        assert snapshot(outside) == before
        assert sorted(Path(base).iterdir()) == beside


def test_a_write_leaves_nothing_beside_itself(tmp_path: Path) -> None:
    write_below(tmp_path, "a/b", b"1")
    write_below(tmp_path, "a/b", b"2")
    assert snapshot(tmp_path) == {"a/b": b"2"}


def test_a_write_that_is_refused_leaves_nothing_either(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_below(tmp_path, "a/b", b"1")
    assert snapshot(tmp_path) == {}


def test_a_file_is_read_up_to_the_limit_and_through_links_that_stay_inside(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep/file").write_text("0123456789")
    (tree / "inside").symlink_to("deep/file")
    (tmp_path / "secret").write_text("secret")
    (tree / "outside").symlink_to("../secret")
    (tree / "loop").symlink_to("loop")
    os.mkfifo(tree / "pipe")
    assert read_below(tree, "inside", 4) == b"0123"
    nothing = ("outside", "loop", "pipe", "deep", "not-there", "deep/file/x", "../secret", "deep/../../secret")
    assert [read_below(tree, name, 10) for name in nothing] == [None] * len(nothing)


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "text")  # type: ignore[arg-type]  # what goes wrong here
    assert snapshot(tmp_path) == {"file": b"old"}


def test_a_lock_is_held_until_it_is_let_go(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        assert try_lock(tmp_path / "lock") is None
    descriptor = try_lock(tmp_path / "lock")
    assert descriptor is not None
    os.close(descriptor)


def in_a_process(code: str, place: Path, *before: str) -> int:
    """Run code with `place` and the names of the module; its exit code."""
    names = "import os, sys; from pathlib import Path; from foundry_implementation_actor.system.files import *"
    argv = [*before, sys.executable, "-c", f"{names}; place = Path(sys.argv[1]); {code}", str(place)]
    return subprocess.run(argv, check=False).returncode


def test_a_lock_dies_with_the_process_that_held_it(tmp_path: Path) -> None:
    in_a_process("try_lock(place); os.kill(os.getpid(), 9)", tmp_path / "lock")
    descriptor = try_lock(tmp_path / "lock")
    assert descriptor is not None
    os.close(descriptor)


def as_a_plain_user() -> list[str]:
    """The words before a command that take root's right to pass over permissions away."""
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []


def test_a_tree_is_removed_whatever_its_directories_permit(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    tree = tmp_path / "tree"
    for folder in ("closed/deep/deeper", "read-only/x", "no-read/y"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "file").write_text("x")
    (tree / "link").symlink_to(kept)
    for folder, mode in (("closed/deep", 0), ("closed", 0), ("read-only", 0o500), ("no-read", 0o300)):
        (tree / folder).chmod(mode)
    assert in_a_process("remove_tree(place)", tree, *as_a_plain_user()) == 0
    assert not tree.exists()
    assert kept.stat().st_mode & 0o777 == 0o500


def test_a_link_in_the_place_of_a_tree_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "link")
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def test_a_state_that_cannot_be_written_is_an_unfit_host(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ActorError, match="the actor's state cannot be written: Not a directory") as raised,
        writable(tmp_path),
    ):
        (tmp_path / "file/below").mkdir()
    assert raised.value.code is Code.UNFIT
    assert raised.value.where == str(tmp_path)
