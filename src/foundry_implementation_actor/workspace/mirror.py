"""One bare mirror of each repository, fetched only when the remote has something new.

A session runs as the actor's own user and may reach it, so nothing but objects and refs is kept of it:
before each fetch its configuration is put back and whatever else steers git is removed. One that git
can no longer read is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import locked, remove_tree, writable, write_atomically
from foundry_implementation_actor.system.git import Git, Remote, make_git_dir, refusal_of
from foundry_implementation_actor.system.journal import Journal

_HEAD = "refs/actor/head"
_FILES, _FOLDERS = frozenset({"HEAD", "config", "packed-refs"}), frozenset({"objects", "refs"})
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
_EMPTY, _SHALLOW = "couldn't find remote ref HEAD", "shallow roots are not allowed"


@dataclass(frozen=True)
class Refs:
    """What a remote has: the commit of its default branch, that of the task's branch, and its tags.

    `task` is empty when the remote has no such branch.
    """

    default: str
    task: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Mirror:
    """A local bare copy of a remote, complete in the history of its default branch and its tags."""

    git: Git
    remote: Remote

    @property
    def objects(self) -> Path:
        """The object directory that a private tree may borrow from."""
        return self.git.git_dir / "objects"


def mirror_of(state: Path, remote: Remote, git: Git) -> Mirror:
    """The mirror of a remote below the state directory, made when it is not there yet.

    Raises:
        ActorError: UNFIT when the state directory cannot be written.
    """
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", remote.url.rpartition("://")[2])[-80:].strip("-.")
    digest = hashlib.sha256(remote.url.encode()).hexdigest()[:12]
    path = state / "mirrors" / f"{name}-{digest}.git"
    with writable(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(_lock(path)):
            if not (path / "HEAD").exists():
                # What a killed process left of a mirror that it was about to make.
                remove_tree(path)
                _make(path)
            _tidy(path)
    return Mirror(replace(git, git_dir=path), remote)


def cleaned(mirror: Mirror) -> Git:
    """The mirror's git, for a verb that talks to the remote: nothing that a session wrote steers it.

    Raises:
        ActorError: UNFIT when the state directory cannot be written.
    """
    with writable(mirror.git.git_dir), locked(_lock(mirror.git.git_dir)):
        _tidy(mirror.git.git_dir)
    return mirror.git


def _tidy(git_dir: Path) -> None:
    """Put a mirror's configuration back and remove all that is neither an object nor a ref. Its lock is held."""
    for place in git_dir.iterdir():
        if place.is_symlink() or place.name not in (_FOLDERS if place.is_dir() else _FILES):
            remove_tree(place)
    # Another place to take objects from, or a made-up history to follow.
    remove_tree(git_dir / "objects/info")
    config = git_dir / "config"
    if not config.is_file() or config.read_bytes() != _CONFIG:
        remove_tree(config)
        write_atomically(config, _CONFIG)


def refresh(mirror: Mirror, branch: str, journal: Journal) -> Refs:
    """Fetch the default branch, the tags and one task's branch; the commits that the remote has.

    A mirror that git cannot read although the remote answers is replaced by a new one (`mirror-made-again`).

    Raises:
        ActorError: UNFIT when the remote cannot be read, has no commit on its default branch, or is
            shallow; when the state directory cannot be written.
    """
    git_dir = mirror.git.git_dir
    with writable(git_dir), locked(_lock(git_dir)):
        _tidy(git_dir)
        got = _fetched(mirror, branch)
        if isinstance(got, Completed) and not any(said in got.errors for said in (_EMPTY, _SHALLOW)):
            why, got = got.errors, _made_again(mirror, branch)
            if isinstance(got, Refs):
                journal.event("mirror-made-again", level="warn", repository=mirror.remote.url, error=why)
    if isinstance(got, Completed):
        raise _unreadable(got, mirror.remote)
    return got


def _make(path: Path) -> None:
    make_git_dir(path, "ref: refs/heads/none", bare=True)


def _made_again(mirror: Mirror, branch: str) -> Refs | Completed:
    """Fetch everything anew beside a mirror and put it in its place, or the git that the remote refused."""
    path = mirror.git.git_dir
    fresh, broken = path.with_suffix(".fresh"), path.with_suffix(".broken")
    for left in (fresh, broken):
        remove_tree(left)
    _make(fresh)
    try:
        beside = replace(mirror, git=replace(mirror.git, git_dir=fresh))
        asked = beside.git.remotely(mirror.remote, "ls-remote", mirror.remote.url, "HEAD")
        got = _fetched(beside, branch) if asked.ok else asked
        if isinstance(got, Refs):
            path.rename(broken)
            fresh.rename(path)
        return got
    finally:
        with contextlib.suppress(OSError):
            remove_tree(fresh)
            remove_tree(broken)


def _fetched(mirror: Mirror, branch: str) -> Refs | Completed:
    """What the remote has once it is fetched, or the git that could not."""
    ref = f"refs/heads/{branch}"
    # A pattern, since a branch that is not there would fail the fetch if it stood there by its name.
    wanted = (f"+HEAD:{_HEAD}", "+refs/tags/*:refs/tags/*", f"+{ref}*:{ref}*")
    done = _fetch(mirror, wanted)
    if not done.ok and _unlocked(mirror.git.git_dir):
        done = _fetch(mirror, wanted)
    if not done.ok or _SHALLOW in done.errors or str(mirror.objects) in done.errors:
        return done  # git goes on without a pack that it cannot read, and complains of it each time
    listed = mirror.git.attempt("for-each-ref", "--format=%(objectname) %(refname)", _HEAD, "refs/tags/", ref)
    found = {name: sha for sha, _, name in (line.partition(" ") for line in listed.text.splitlines())}
    if not listed.ok or _HEAD not in found:
        return listed
    tags = {name: sha for name, sha in found.items() if name.startswith("refs/tags/")}
    return Refs(found[_HEAD], found.get(ref, ""), tags)


def _fetch(mirror: Mirror, wanted: Sequence[str]) -> Completed:
    return mirror.git.remotely(
        mirror.remote, "fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-write-fetch-head",
        mirror.remote.url, *wanted,
    )  # fmt: skip


def _unlocked(git_dir: Path) -> bool:
    """Remove what a killed git left locked; whether there was any. The mirror's own lock is held meanwhile."""
    left = [*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")]
    for path in left:
        path.unlink(missing_ok=True)
    return bool(left)


def _lock(path: Path) -> Path:
    """Only one process at a time makes a mirror or fetches into it."""
    return path.with_suffix(".lock")


def _unreadable(done: Completed, remote: Remote) -> ActorError:
    if _SHALLOW in done.errors:
        return ActorError(
            Code.UNFIT, "the repository on the forge is shallow, so there is no whole history to build on",
            hint="complete it there (git fetch --unshallow)", where=remote.url,
        )  # fmt: skip
    if _EMPTY in done.errors:
        return ActorError(
            Code.UNFIT, "the repository has no commit on its default branch",
            hint="push a first commit, or set the default branch to one that exists", where=remote.url,
        )  # fmt: skip
    return refusal_of(done, "the repository cannot be read", remote)
