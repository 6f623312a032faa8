"""A private tree for one run, and what it will be compared with, kept in memory.

The tree's own `.git` is the session's to use and to ruin: no remote, no login, objects borrowed from
the mirror. Nothing reads it back. The git directory that filled the tree is gone before a session
starts; `trusted.py` makes another after it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.change import GITLINK, LINK
from foundry_implementation_actor.system.files import locked, remove_tree, try_lock, writable
from foundry_implementation_actor.system.git import Git, make_git_dir
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.own_users import remove_theirs_too
from foundry_implementation_actor.workspace.configuration import Entry, Found, look
from foundry_implementation_actor.workspace.mirror import Mirror, Refs

_LOCK = "lock"


@dataclass(frozen=True)
class Base:
    """The commit that lies in the tree. All of it is in memory: a session can write whatever is on disk.

    `objects` is the directory to borrow from. `whole_index` is git's index as the tree was filled,
    `index` the same without its submodules. `links` gives each link's target. `has_attributes` says
    whether any file may look different in the tree than in the commit. `configuration` is what the
    repository brings along for other programs.
    """

    commit: str
    tags: Mapping[str, str]
    objects: Path
    whole_index: bytes
    index: bytes
    submodules: tuple[str, ...]
    links: Mapping[str, str]
    has_attributes: bool
    configuration: tuple[Found, ...]


@dataclass(frozen=True)
class Checkout:
    """One run's directory: the tree a session works in, its HOME and TMP, and what the tree held at first."""

    folder: Path
    base: Base

    @property
    def tree(self) -> Path:
        """The session's working directory."""
        return self.folder / "tree"

    @property
    def git(self) -> Path:
        """The session's own git directory, which nothing reads back."""
        return self.tree / ".git"

    @property
    def home(self) -> Path:
        """The session's own HOME."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """The session's own TMPDIR."""
        return self.folder / "tmp"


@contextlib.contextmanager
def run_folder(state: Path, prefix: str, journal: Journal) -> Iterator[Path]:
    """A fresh directory below `state/runs`, locked while it is used and removed at the end.

    What a session made in a way that it cannot be removed is recorded as `not-removed` and left for
    the next sweep: it changes nothing about what the run came to.

    Raises:
        ActorError: UNFIT when the state directory cannot be written.
    """
    runs = state / "runs"
    with writable(runs):
        runs.mkdir(parents=True, exist_ok=True)
        with locked(state / "runs.lock"):
            # By its real name: a sandbox takes no place that is reached through a link.
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=runs.resolve()))
            try:
                lock = try_lock(folder / _LOCK)
            except OSError:
                folder.rmdir()
                raise
    try:
        yield folder
    finally:
        try:
            remove_theirs_too(folder)
        except OSError as error:
            journal.event("not-removed", level="warn", folder=folder.name, error=_told(error))
        finally:
            if lock is not None:
                os.close(lock)


def sweep(state: Path, journal: Journal) -> list[str]:
    """Remove what killed processes left below `state/runs`: the names of the removed directories.

    Each is recorded as `swept`; one that cannot be removed as `not-removed`, and skipped. Raises
    nothing for a state that cannot be written: a run says so when it is asked for.
    """
    runs = state / "runs"
    try:
        if not runs.is_dir():
            return []
        with locked(state / "runs.lock"):
            return [folder.name for folder in sorted(runs.iterdir()) if _swept(folder, journal)]
    except OSError as error:
        journal.event("not-swept", level="warn", folder=str(runs), error=_told(error))
        return []


def _swept(folder: Path, journal: Journal) -> bool:
    try:
        swept = _removed_unless_held(folder)
    except OSError as error:
        journal.event("not-removed", level="warn", folder=folder.name, error=_told(error))
        return False
    if swept:
        journal.event("swept", level="warn", folder=folder.name)
    return swept


def _removed_unless_held(folder: Path) -> bool:
    """Remove one run's folder unless its run still holds it; whether it did."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    with contextlib.suppress(PermissionError):  # somebody else's; the lock says so
        folder.chmod(0o700)
    lock = try_lock(folder / _LOCK)
    if lock is None:
        return False
    try:
        remove_theirs_too(folder)
    finally:
        os.close(lock)
    return True


def _told(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


@dataclass(frozen=True)
class Start:
    """From where a run starts: the remote's refs, the commit to build on, and the task's branch."""

    refs: Refs
    base: str
    branch: str


def check_out(folder: Path, mirror: Mirror, start: Start, capability: Capability) -> Checkout:
    """Fill `folder/tree` with the base commit and make the session's git directory.

    Raises:
        ActorError: UNFIT when the tree or the git directories cannot be written.
    """
    git = replace(mirror.git, git_dir=folder / "checkout.git", work_tree=folder / "tree")
    with writable(folder):
        for part in ("tree", "home", "tmp"):
            (folder / part).mkdir()
        make_git_dir(git.git_dir, start.base, borrows=mirror.objects)
    git.output("read-tree", "--reset", "-u", start.base)
    with writable(folder):
        checkout = Checkout(folder, _base(git, folder / "tree", mirror, start))
        remove_tree(git.git_dir)
        _make_session_git(checkout, mirror, start, capability)
    return checkout


def renew(checkout: Checkout, mirror: Mirror, start: Start, capability: Capability) -> None:
    """Give the next session of a run a HOME, a TMPDIR and a git directory that no earlier one has seen.

    The files stay as they were left. To be called when every process of the earlier session has ended.

    Raises:
        ActorError: UNFIT when something of the earlier session cannot be removed.
    """
    with writable(checkout.folder):
        checkout.tree.chmod(stat.S_IMODE(checkout.tree.stat().st_mode) | stat.S_IRWXU)
        for place in (checkout.home, checkout.temporary, checkout.git):
            remove_tree(place)
        checkout.home.mkdir()
        checkout.temporary.mkdir()
        _make_session_git(checkout, mirror, start, capability)


def bare_view(folder: Path, mirror: Mirror, refs: Refs, commit: str) -> Git:
    """A git directory of its own on a commit of the mirror, without a tree: for reading and exporting."""
    git = replace(mirror.git, git_dir=folder / "trusted.git")
    make_git_dir(git.git_dir, commit, borrows=mirror.objects, packed_refs=packed(refs.tags))
    return git


def packed(refs: Mapping[str, str]) -> str:
    """The content of a `packed-refs` file."""
    lines = (f"{sha} {name}\n" for name, sha in sorted(refs.items()))
    return "# pack-refs with: sorted \n" + "".join(lines)


def joined(records: Iterable[str]) -> bytes:
    """Paths as git reads them with `-z`."""
    return b"".join(os.fsencode(record) + b"\0" for record in records)


def _base(git: Git, tree: Path, mirror: Mirror, start: Start) -> Base:
    """What the tree holds now. Submodules leave the index, so that no later git looks into one.

    A session could turn a submodule's directory into a repository with a configuration of its own.
    """
    index = git.git_dir / "index"
    whole = kept = index.read_bytes()
    records = (record.partition("\t") for record in git.records("ls-files", "--stage", "-z"))
    entries = [Entry(meta.partition(" ")[0], path) for meta, _, path in records]
    configuration = look(git, tree, entries)
    submodules = tuple(entry.path for entry in entries if entry.mode == GITLINK)
    if submodules:
        git.output("update-index", "--force-remove", "-z", "--stdin", stdin=joined(submodules))
        kept = index.read_bytes()
    links = {entry.path: str((tree / entry.path).readlink()) for entry in entries if entry.mode == LINK}
    has_attributes = any(entry.path.rpartition("/")[2] == ".gitattributes" for entry in entries)
    return Base(
        start.base, start.refs.tags, mirror.objects, whole, kept, submodules, links, has_attributes, configuration
    )


def _make_session_git(checkout: Checkout, mirror: Mirror, start: Start, capability: Capability) -> None:
    """The session's own `.git`: history to read, the task's branch checked out, nothing to push to."""
    path = checkout.git
    head = f"ref: refs/heads/{start.branch}"
    make_git_dir(path, head, borrows=mirror.objects, packed_refs=packed(start.refs.tags))
    branch = path / "refs/heads" / start.branch
    branch.parent.mkdir(parents=True, exist_ok=True)
    branch.write_text(f"{start.base}\n")
    with (path / "config").open("a") as config:
        config.write(f"[user]\n\tname = {capability.git_author_name}\n\temail = {capability.git_author_email}\n")
    (path / "index").write_bytes(checkout.base.whole_index)
