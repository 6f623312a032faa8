"""One bare mirror of each repository, fetched only when the remote has something new."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import locked, remove_tree, writable
from foundry_implementation_actor.system.git import Git, Remote, make_git_dir, refusal_of

_HEAD = "refs/actor/head"


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
                make_git_dir(path, "ref: refs/heads/none", bare=True)
    return Mirror(replace(git, git_dir=path), remote)


def refresh(mirror: Mirror, branch: str) -> Refs:
    """Fetch the default branch, the tags and one task's branch; the commits that the remote has.

    Raises:
        ActorError: UNFIT when the remote cannot be read or has no commit on its default branch.
    """
    ref = f"refs/heads/{branch}"
    # A pattern, since a branch that is not there would fail the fetch if it stood there by its name.
    wanted = (f"+HEAD:{_HEAD}", "+refs/tags/*:refs/tags/*", f"+{ref}*:{ref}*")
    with locked(_lock(mirror.git.git_dir)):
        done = _fetch(mirror, wanted)
        if not done.ok and _unlocked(mirror.git.git_dir):
            done = _fetch(mirror, wanted)
        if not done.ok:
            raise _unreadable(done, mirror.remote)
        found = _refs(mirror.git, _HEAD, "refs/tags/", ref)
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


def _refs(git: Git, *names: str) -> dict[str, str]:
    lines = git.text("for-each-ref", "--format=%(objectname) %(refname)", *names).splitlines()
    return {name: sha for sha, _, name in (line.partition(" ") for line in lines)}


def _unreadable(done: Completed, remote: Remote) -> ActorError:
    if "couldn't find remote ref HEAD" in done.errors:
        return ActorError(
            Code.UNFIT, "the repository has no commit on its default branch",
            hint="push a first commit, or set the default branch to one that exists", where=remote.url,
        )  # fmt: skip
    return refusal_of(done, "the repository cannot be read", remote)
