"""The git directory that decides what a session changed, made only after the session has ended.

A session can write whatever the actor's user can: a git directory that lay on disk meanwhile could
name other hosts, drivers or an index of its own. So the index waits in memory, and everything else
is made anew in a place that did not exist before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.system.files import writable
from foundry_implementation_actor.system.git import Git, make_git_dir
from foundry_implementation_actor.workspace.checkout import Base, Checkout, packed

_FAR_FUTURE = 4_000_000_000


class Written(NamedTuple):
    """A file of the actor's own: its length in bytes and its SHA-256."""

    size: int
    digest: bytes


@dataclass(frozen=True)
class Prepared:
    """The tree as it is before the session, in memory: the base, the grounding files, the moment (ns)."""

    tree: Path
    base: Base
    grounding: Mapping[str, Written]
    moment: int


@dataclass(frozen=True)
class Trusted:
    """A prepared tree with the git directory by which it is judged and from which it is delivered."""

    git: Git
    prepared: Prepared

    @property
    def tree(self) -> Path:
        """What the session left."""
        return self.prepared.tree

    @property
    def base(self) -> Base:
        """What the tree held before."""
        return self.prepared.base

    @property
    def base_index(self) -> Path:
        """The index in which the commit's tree is put together."""
        return self.git.git_dir / "index.base"

    def within(self, timeout_s: float) -> Trusted:
        """The same with another time limit for each git command, in seconds."""
        return replace(self, git=replace(self.git, timeout_s=timeout_s))


def prepare(checkout: Checkout, grounding: Mapping[str, bytes]) -> Prepared:
    """Record the tree as it is before the session; call it last, nothing else may write in between.

    Args:
        checkout: the filled tree.
        grounding: the SHA-256 of each file that was written into it since, by repository path.
    """
    written = {path: Written((checkout.tree / path).stat().st_size, digest) for path, digest in grounding.items()}
    # The file system's own clock, which lags behind the process's: see `open_trusted`.
    os.utime(checkout.folder)
    return Prepared(checkout.tree, checkout.base, written, checkout.folder.stat().st_mtime_ns)


def open_trusted(git: Git, prepared: Prepared, git_dir: Path) -> Trusted:
    """Make the git directory by which a tree is judged, after every process of the session has ended.

    Args:
        git: this host's git.
        prepared: what `prepare` returned.
        git_dir: must not exist, in a directory that did not exist while the session ran.

    Raises:
        ActorError: UNFIT when it cannot be written.
    """
    base = prepared.base
    trusted = Trusted(replace(git, git_dir=git_dir, work_tree=prepared.tree), prepared)
    with writable(git_dir.parent):
        make_git_dir(git_dir, base.commit, borrows=base.objects, packed_refs=packed(base.tags))
        index = git_dir / "index"
        index.write_bytes(base.index)
        # Git reads again what was written in the same second as its index. The actor wrote all of it
        # before this moment and the session came after.
        os.utime(index, ns=(prepared.moment, prepared.moment))
        trusted.base_index.write_bytes(base.whole_index)
        settle(trusted.base_index)
    return trusted


def settle(index: Path) -> None:
    """Date an index that is never compared with a tree into the future.

    Git reads every file again that is as young as the index which it is about to write.
    """
    os.utime(index, (_FAR_FUTURE, _FAR_FUTURE))


def is_as_written(place: Path, written: Written) -> bool:
    """Whether a file is still as the actor wrote it; never reads more than that was."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size != written.size:
            return False
        return hashlib.sha256(file.read(written.size)).digest() == written.digest
