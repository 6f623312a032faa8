"""One bare mirror of each repository, fetched only when the remote has something new."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import locked, remove_tree, writable
from foundry_implementation_actor.system.git import Git, Remote, make_git_dir, refusal_of

_PEELED = "^{}"


@dataclass(frozen=True)
class Refs:
    """What a remote has: its default branch (`refs/heads/…`, empty when there is none) and every ref."""

    default: str
    heads: Mapping[str, str]
    tags: Mapping[str, str]

    def branch(self, name: str) -> str:
        """The commit of a branch by its short name, or an empty string."""
        return self.heads.get(f"refs/heads/{name}", "")


@dataclass(frozen=True)
class Mirror:
    """A local bare copy of a remote, complete in history and tags."""

    git: Git
    remote: Remote

    @property
    def objects(self) -> Path:
        """The object directory that a private tree may borrow from."""
        return self.git.git_dir / "objects"


def mirror_of(state: Path, remote: Remote, git: Git) -> Mirror:
    """The mirror of a remote below the state directory, made when it is not there yet."""
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


def refresh(mirror: Mirror) -> Refs:
    """Ask the remote for its refs and fetch when the mirror lacks any of them.

    Raises:
        ActorError: UNFIT when the remote cannot be read, saying why.
    """
    with locked(_lock(mirror.git.git_dir)):
        refs = remote_refs(mirror)
        if _known(mirror.git) != {**refs.heads, **refs.tags}:
            _fetch(mirror)
            refs = remote_refs(mirror) if _known(mirror.git) != {**refs.heads, **refs.tags} else refs
    return refs


def remote_refs(mirror: Mirror) -> Refs:
    """What the remote says it has now."""
    done = mirror.git.remotely(mirror.remote, "ls-remote", "--symref", mirror.remote.url)
    if not done.ok:
        raise refusal_of(done, "the repository cannot be read", mirror.remote)
    default, found = "", dict[str, str]()
    for line in done.text.splitlines():
        left, _, name = line.partition("\t")
        if left.startswith("ref: ") and name == "HEAD":
            default = left.removeprefix("ref: ")
        elif not name.endswith(_PEELED):
            found[name] = left
    heads = {name: sha for name, sha in found.items() if name.startswith("refs/heads/")}
    tags = {name: sha for name, sha in found.items() if name.startswith("refs/tags/")}
    return Refs(default if default in heads else "", heads, tags)


def base_of(refs: Refs, remote: Remote) -> str:
    """The commit of the default branch.

    Raises:
        ActorError: UNFIT when the repository has no default branch with a commit.
    """
    if not refs.default:
        raise ActorError(
            Code.UNFIT, "the repository has no commit on its default branch",
            hint="push a first commit, or set the default branch to one that exists", where=remote.url,
        )  # fmt: skip
    return refs.heads[refs.default]


def _lock(path: Path) -> Path:
    """Only one process at a time makes a mirror or fetches into it."""
    return path.with_suffix(".lock")


def _known(git: Git) -> dict[str, str]:
    lines = git.text("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", "refs/tags/").splitlines()
    return {name: sha for sha, _, name in (line.partition(" ") for line in lines)}


def _fetch(mirror: Mirror) -> None:
    done = mirror.git.remotely(
        mirror.remote, "fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-write-fetch-head",
        mirror.remote.url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
    )  # fmt: skip
    if not done.ok:
        raise refusal_of(done, "the repository cannot be fetched", mirror.remote)
