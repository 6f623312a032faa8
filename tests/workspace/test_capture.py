"""What changed, against a second opinion: plain git on a copy of the same tree."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.capability import Capability, Component
from foundry_implementation_actor.domain.change import Kind
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.git import Git, Remote
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.workspace.capture import packed_tree, stage, staged_tree, survey, take_in
from foundry_implementation_actor.workspace.checkout import Start, check_out
from foundry_implementation_actor.workspace.mirror import Refs, mirror_of, refresh
from foundry_implementation_actor.workspace.trusted import Prepared, Trusted, open_trusted, prepare
from support.repos import Repo, make_repo

ROOTS = ("in/",)
CAPABILITY = Capability("claude-code", "A.CAP.B", "o/r", "o/g", (Component("c", "in/", "in/"),))
FILES = {
    "in/a": "1\n", "in/b": "2\n", "in/d/e": "3\n", "in/d/f": "4\n", "in/café/g h": "5\n", "out/x": "6\n",
    ".gitignore": "*.o\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    base = tmp_path_factory.mktemp("origin")
    return make_repo(base / "tree", FILES).bare(base / "origin.git")


class Place:
    """A tree that is ready for a session; `judged` makes the git directory that looks at what came of it."""

    def __init__(self, base: Path, git: Git, prepared: Prepared) -> None:
        self.base, self.git, self.prepared = base, git, prepared
        self.tree = prepared.tree

    def judged(self) -> Trusted:
        return open_trusted(self.git, self.prepared, Path(tempfile.mkdtemp(dir=self.base)) / "trusted.git")


@contextlib.contextmanager
def prepared_checkout(origin: Repo) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as base:
        git = Git(Path(base), {"PATH": os.environ["PATH"]}, 30.0)
        mirror = mirror_of(Path(base) / "state", Remote(f"file://{origin.path}"), git)
        refs = refresh(mirror, "impl/T", Journal())
        folder = Path(base) / "run"
        folder.mkdir()
        checkout = check_out(folder, mirror, Start(refs, refs.default, "impl/T"), CAPABILITY)
        yield Place(Path(base), git, prepare(checkout, {}))


def second_opinion(place: Place, origin: Repo) -> str:
    """The tree that `git add` makes of the same files, outside of it as in the base."""
    copy = place.base / "copy"
    shutil.copytree(place.tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    repo = Repo(copy)
    repo.git("init", "-q")
    repo.git("fetch", "-q", str(origin.path), "main")
    repo.git("read-tree", "FETCH_HEAD")
    repo.git("-c", "core.safecrlf=false", "add", "--all", "in")
    return repo.git("write-tree")


def captured(trusted: Trusted) -> str:
    found = survey(trusted, ROOTS, ())
    assert not found.unholdable
    assert not found.outside
    changes, refused = stage(trusted, found.inside)
    assert not refused
    assert all((change.kind is Kind.DELETED) == (not change.blob) for change in changes)
    return staged_tree(trusted)


def carried_over(trusted: Trusted, tree: str, other: Trusted) -> str:
    """The tree, in another git directory that has it all by its pack and the base alone."""
    pack = packed_tree(trusted, tree)
    shutil.rmtree(trusted.git.git_dir)
    take_in(other, pack)
    return other.git.text("rev-list", "--objects", tree).split()[0]


PATHS = st.sampled_from(
    ["a", "b", "d", "d/e", "d/new", "café", "café/g h", "n", "n/o", "n/o/p", "x.o", 'ü\n"', "--all"]
)
CONTENT = st.sampled_from(["1\n", "2\n", "", "x", "\r\n", "\0"])


def put(tree: Path, path: str, content: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(content, newline="")


def remove(tree: Path, path: str, _: str) -> None:
    place = tree / path
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def link(tree: Path, path: str, _: str) -> None:
    remove(tree, path, "")
    (tree / path).symlink_to("b")


def move(tree: Path, path: str, _: str) -> None:
    (tree / path).rename(tree / "moved")


def flip(tree: Path, path: str, _: str) -> None:
    (tree / path).chmod((tree / path).stat().st_mode ^ 0o111)


def keep_times(tree: Path, path: str, content: str) -> None:
    """Change a file and put its times back, as a tool that wants to hide it might."""
    before = (tree / path).stat()
    (tree / path).write_text(content)
    os.utime(tree / path, ns=(before.st_atime_ns, before.st_mtime_ns))


Step = tuple[Callable[[Path, str, str], None], str, str]
STEPS = st.lists(st.tuples(st.sampled_from([put, remove, link, move, flip, keep_times]), PATHS, CONTENT), max_size=8)


@example(steps=[(link, "b", ""), (link, "d", "")])
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps=STEPS)
def test_any_sequence_of_changes_gives_the_tree_that_git_would_make(origin: Repo, steps: list[Step]) -> None:
    with prepared_checkout(origin) as place:
        for act, path, content in steps:
            with contextlib.suppress(OSError):
                act(place.tree / "in", path, content)
        if (place.tree / "in").is_dir():
            trusted = place.judged()
            tree = captured(trusted)
            assert tree == second_opinion(place, origin)
            assert carried_over(trusted, tree, place.judged()) == tree


def test_a_change_of_one_byte_in_the_same_moment_is_seen(origin: Repo) -> None:
    """Size and times are those of the base; only the inode's own change time is not."""
    for _ in range(5):
        with prepared_checkout(origin) as place:
            keep_times(place.tree / "in", "a", "9\n")
            [change] = survey(place.judged(), ROOTS, ()).inside
            assert (change.path, change.kind) == ("in/a", Kind.CHANGED)


def test_what_a_plain_user_may_not_look_into_is_told_and_not_passed_over(origin: Repo) -> None:
    with prepared_checkout(origin) as place:
        (place.tree / "in/hidden").mkdir(mode=0)
        (place.tree / "in/d").chmod(0)
        with plain_user(place.base):
            found = survey(place.judged(), ROOTS, ())
        (place.tree / "in/d").chmod(0o700)
        denied = "cannot be read: Permission denied"
        assert {("in/hidden/", denied), ("in/d/e", denied), ("in/d/f", denied)} <= set(found.unholdable)
        assert not found.inside


@contextlib.contextmanager
def plain_user(base: Path) -> Iterator[None]:
    """Go on as somebody who owns what lies below `base`; root may look everywhere."""
    if os.geteuid():
        yield
        return
    for folder, _, names in os.walk(base):
        for place in (folder, *(f"{folder}/{name}" for name in names)):
            os.chown(place, 65534, -1, follow_symlinks=False)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_run_folder_that_cannot_be_filled_is_an_unfit_host(origin: Repo, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with prepared_checkout(origin) as place:
        commit = place.prepared.base.commit
        refs = Refs(commit, "", {})
        mirror = mirror_of(tmp_path / "state", Remote(f"file://{origin.path}"), place.git)
        with pytest.raises(ActorError, match="the actor's state cannot be written") as raised:
            check_out(tmp_path, mirror, Start(refs, commit, "impl/T"), CAPABILITY)
        assert raised.value.code is Code.UNFIT


def test_the_trusted_git_borrows_history_and_tags(origin: Repo) -> None:
    with prepared_checkout(origin) as place:
        git, commit = place.judged().git, place.prepared.base.commit
        assert git.text("rev-list", "--count", commit) == "1"
        assert git.text("rev-parse", "HEAD") == commit


def test_the_sessions_git_has_the_history_no_remote_and_a_clean_tree(origin: Repo) -> None:
    with prepared_checkout(origin) as place:
        session = Repo(place.tree)
        assert session.git("status", "--porcelain") == ""
        assert session.git("remote") == ""
        assert session.git("symbolic-ref", "--short", "HEAD") == "impl/T"
        assert session.git("log", "--format=%s") == "initial state"
