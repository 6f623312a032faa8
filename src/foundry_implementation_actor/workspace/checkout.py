"""A private tree for one run, and the two git directories that belong to it.

`trusted.git` is the actor's own, outside of the session's reach; it alone decides what changed and
is the only one that a git with the actor's login reads. The tree's own `.git` is the session's to
use and to ruin: no remote, no login, objects borrowed from the mirror. Nothing reads it back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.system.files import locked, remove_tree, try_lock, writable
from foundry_implementation_actor.system.git import Git, make_git_dir
from foundry_implementation_actor.workspace.mirror import Mirror, Refs

_LOCK = "lock"
_FAR_FUTURE = 4_000_000_000


@dataclass(frozen=True)
class Checkout:
    """One run's directory: the tree a session works in, its HOME and TMP, and the trusted git."""

    folder: Path
    git: Git

    @property
    def tree(self) -> Path:
        """The session's working directory."""
        return self.folder / "tree"

    @property
    def index(self) -> Path:
        """The trusted index: what the tree is compared with."""
        return self.git.git_dir / "index"

    @property
    def base_index(self) -> Path:
        """A copy of it in which the commit's tree is put together."""
        return self.git.git_dir / "index.base"

    @property
    def home(self) -> Path:
        """The session's own HOME."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """The session's own TMPDIR."""
        return self.folder / "tmp"


@contextlib.contextmanager
def run_folder(state: Path, prefix: str) -> Iterator[Path]:
    """A fresh directory below `state/runs`, locked while it is used and removed at the end.

    Raises:
        ActorError: UNFIT when the state directory cannot be written.
    """
    runs = state / "runs"
    with writable(runs):
        runs.mkdir(parents=True, exist_ok=True)
        with locked(state / "runs.lock"):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=runs))
            lock = try_lock(folder / _LOCK)
    try:
        yield folder
    finally:
        remove_tree(folder)
        if lock is not None:
            os.close(lock)


def sweep(state: Path) -> list[str]:
    """Remove what killed processes left below `state/runs`: the names of the removed directories."""
    runs = state / "runs"
    if not runs.is_dir():
        return []
    removed = []
    with locked(state / "runs.lock"):
        for folder in sorted(runs.iterdir()):
            lock = try_lock(folder / _LOCK) if folder.is_dir() and not folder.is_symlink() else None
            if lock is not None:
                remove_tree(folder)
                os.close(lock)
                removed.append(folder.name)
    return removed


@dataclass(frozen=True)
class Start:
    """From where a run starts: the remote's refs, the commit to build on, and the task's branch."""

    refs: Refs
    base: str
    branch: str


def check_out(folder: Path, mirror: Mirror, start: Start, capability: Capability) -> Checkout:
    """Fill `folder/tree` with the base commit and make both git directories.

    Raises:
        ActorError: UNFIT when the tree or the git directories cannot be written.
    """
    checkout = Checkout(folder, replace(mirror.git, git_dir=folder / "trusted.git", work_tree=folder / "tree"))
    with writable(folder):
        for part in (checkout.tree, checkout.home, checkout.temporary):
            part.mkdir()
        make_git_dir(checkout.git.git_dir, start.base, borrows=mirror.objects, packed_refs=_packed(start.refs.tags))
    checkout.git.output("read-tree", "--reset", "-u", start.base)
    with writable(folder):
        shutil.copyfile(checkout.index, checkout.base_index)
        settle(checkout.base_index)
        _make_session_git(checkout, mirror, start, capability)
    return checkout


def bare_view(folder: Path, mirror: Mirror, refs: Refs, commit: str) -> Git:
    """A git directory of its own on a commit of the mirror, without a tree: for reading and exporting."""
    git = replace(mirror.git, git_dir=folder / "trusted.git")
    make_git_dir(git.git_dir, commit, borrows=mirror.objects, packed_refs=_packed(refs.tags))
    return git


def settle(index: Path) -> None:
    """Date an index that is never compared with a tree into the future.

    Git reads every file again that is as young as the index which it is about to write.
    """
    os.utime(index, (_FAR_FUTURE, _FAR_FUTURE))


def _packed(refs: Mapping[str, str]) -> str:
    lines = (f"{sha} {name}\n" for name, sha in sorted(refs.items()))
    return "# pack-refs with: sorted \n" + "".join(lines)


def _make_session_git(checkout: Checkout, mirror: Mirror, start: Start, capability: Capability) -> None:
    """The session's own `.git`: history to read, the task's branch checked out, nothing to push to."""
    path = checkout.tree / ".git"
    head = f"ref: refs/heads/{start.branch}"
    make_git_dir(path, head, borrows=mirror.objects, packed_refs=_packed(start.refs.tags))
    branch = path / "refs/heads" / start.branch
    branch.parent.mkdir(parents=True, exist_ok=True)
    branch.write_text(f"{start.base}\n")
    with (path / "config").open("a") as config:
        config.write(f"[user]\n\tname = {capability.git_author_name}\n\temail = {capability.git_author_email}\n")
    shutil.copyfile(checkout.index, path / "index")
