"""What a session changed, decided by a git directory that it could not touch.

Before the session the trusted index is made to hold the base and the grounding (`prepare`). After
it the tree is compared with that index (`survey`), which reads no file that did not change; what
changed inside the roots is hashed (`stage`), and the commit's tree is the base's own tree with
those changes and nothing else applied to it (`commit_tree`). Renames are off: both sides count.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from foundry_implementation_actor.domain.change import ABSENT, GITLINK, LINK, Change, Kind
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.checkout import Checkout

_KINDS = {"A": Kind.ADDED, "D": Kind.DELETED, "M": Kind.CHANGED, "T": Kind.CHANGED}
_NO_BLOB = "0" * 40

Unholdable = tuple[str, str]
"""A path that no commit can hold, and why."""


@dataclass(frozen=True)
class Prepared:
    """The state before the session: the base commit, and the paths of its submodules."""

    base: str
    submodules: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    """What the session left, by path: changes inside and outside of the roots, sizes known, unread."""

    inside: tuple[Change, ...]
    outside: tuple[Change, ...]
    unholdable: tuple[Unholdable, ...]


def prepare(checkout: Checkout, base: str, grounding: Sequence[str]) -> Prepared:
    """Record the tree in the trusted index as it is before the session, with the grounding in it.

    Submodules leave the index here, so that no later git looks into a directory that a session
    could turn into a repository with its own configuration.
    """
    git = checkout.git
    git.output("update-index", "--add", "--replace", "-z", "--stdin", stdin=_joined(grounding))
    entries = git.records("ls-files", "--stage", "-z")
    submodules = tuple(entry.partition("\t")[2] for entry in entries if entry.startswith(GITLINK))
    if submodules:
        git.output("update-index", "--force-remove", "-z", "--stdin", stdin=_joined(submodules))
    return Prepared(base, submodules)


def survey(checkout: Checkout, prepared: Prepared, roots: Sequence[str], scratch: Sequence[str]) -> Survey:
    """Compare the tree with what was prepared, by path. Nothing of the session's own git is read.

    Args:
        checkout: the run's tree and trusted git.
        prepared: what `prepare` returned.
        roots: the component roots, each ending in `/`.
        scratch: directories (ending in `/`) whose untracked files count for nothing.
    """
    git = checkout.git
    tracked = _tracked(git)
    if not all(_under(change.path, roots) for change in tracked):
        # A file that was only touched is listed too, until git has looked into it.
        git.attempt("update-index", "-q", "--refresh")
        tracked = _tracked(git)
    others = git.records("ls-files", "--others", "--exclude-standard", "-z")
    new = [path for path in others if not _under(path, scratch)]
    unholdable = [(path, "is a git repository of its own") for path in new if path.endswith("/")]
    unholdable += [(path, "is a submodule, which a session may not fill") for path in _filled(checkout, prepared)]
    unholdable += [
        (at, "is a link or a file in place of a directory") for root in roots if (at := _blocked(checkout, root))
    ]
    found = [*tracked, *(Change(path, Kind.ADDED, ABSENT, "") for path in new if not path.endswith("/"))]
    changes = [replace(change, size=_size(checkout, change.path)) for change in found]
    return Survey(
        inside=tuple(change for change in changes if _under(change.path, roots)),
        outside=tuple(change for change in changes if not _under(change.path, roots)),
        unholdable=tuple(dict.fromkeys(unholdable)),
    )


def stage(
    checkout: Checkout, prepared: Prepared, inside: Sequence[Change]
) -> tuple[tuple[Change, ...], list[Unholdable]]:
    """Hash what changed inside the roots: the changes with modes and blobs, and what git refused."""
    git = checkout.git
    paths = [change.path for change in inside]
    done = git.attempt("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=_joined(paths))
    if not done.ok:
        unreadable = [path for path in paths if _unreadable(checkout, path)]
        return (), [(path, "cannot be read") for path in unreadable] or [(paths[0], done.errors)]
    against_base = git.records("diff-index", "--cached", "--no-renames", "-r", "--raw", "-z", prepared.base)
    sizes = {change.path: change.size for change in inside}
    # The grounding differs from the base too, and so do the submodules that left the index.
    staged = [change for change in _compared(against_base) if change.path in sizes]
    missed = set(paths) - {change.path for change in staged}
    refused = [(change.path, "has a name that git refuses") for change in inside if _added(change, missed)]
    return tuple(replace(change, size=sizes.get(change.path, 0)) for change in staged), refused


def inspected(git: Git, changes: Sequence[Change], is_secret: Callable[[bytes], bool]) -> tuple[Change, ...]:
    """The same changes with link targets and whether a known secret stands in them.

    Reads every changed blob, so the size of the change is judged before.
    """
    blobs = {change.blob for change in changes if change.blob and change.mode != GITLINK}
    contents = dict(_contents(git, blobs))
    return tuple(_inspected(change, contents.get(change.blob, b""), is_secret) for change in changes)


def commit_tree(checkout: Checkout, changes: Sequence[Change]) -> str:
    """The tree of the commit: the base's tree with these changes applied; its object id."""
    # Deletions first: a file may have become a directory.
    ordered = sorted(changes, key=lambda change: bool(change.blob))
    records = [f"{change.mode} {change.blob or _NO_BLOB}\t{change.path}" for change in ordered]
    apart = {"GIT_INDEX_FILE": str(checkout.base_index)}
    checkout.git.output("update-index", "--replace", "-z", "--index-info", stdin=_joined(records), extra=apart)
    return checkout.git.text("write-tree", extra=apart)


def ignored(checkout: Checkout, roots: Sequence[str]) -> list[str]:
    """What lies under the roots and is ignored by the repository's own rules, directories in one."""
    paths = checkout.git.records("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return [path for path in paths if _under(path, roots)]


def changed_paths(git: Git, commit: str) -> list[str]:
    """The paths in which a commit differs from its first parent."""
    return git.records("diff-tree", "-r", "--no-commit-id", "--name-only", "--no-renames", "-z", commit)


def _joined(records: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(record) + b"\0" for record in records)


def _under(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(root) for root in roots)


def _tracked(git: Git) -> list[Change]:
    return _compared(git.records("diff-files", "--no-renames", "--ignore-submodules=all", "--raw", "-z"))


def _compared(records: list[str]) -> list[Change]:
    """The changes of git's raw output: alternating `:modes blobs status` and path."""
    changes = []
    for meta, path in zip(records[::2], records[1::2], strict=True):
        _, mode, _, blob, status = meta.removeprefix(":").split()
        changes.append(Change(path, _KINDS[status[0]], mode, "" if mode == ABSENT else blob))
    return changes


def _filled(checkout: Checkout, prepared: Prepared) -> list[str]:
    """The submodules whose directory is no longer empty or is something else now."""
    filled = []
    for path in prepared.submodules:
        place = checkout.tree / path
        if place.is_symlink() or place.is_file() or (place.is_dir() and any(place.iterdir())):
            filled.append(path)
    return filled


def _blocked(checkout: Checkout, root: str) -> str:
    """The first part of a root that is there but is no directory, as a repository path; else empty."""
    path = PurePosixPath()
    for part in PurePosixPath(root).parts:
        path /= part
        place = checkout.tree / path
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return str(path)
    return ""


def _size(checkout: Checkout, path: str) -> int:
    try:
        return os.lstat(checkout.tree / path).st_size
    except OSError:
        return 0


def _unreadable(checkout: Checkout, path: str) -> bool:
    try:
        mode = os.lstat(checkout.tree / path).st_mode
        return stat.S_ISREG(mode) and not os.access(checkout.tree / path, os.R_OK)
    except FileNotFoundError:
        return False


def _added(change: Change, missed: set[str]) -> bool:
    return change.path in missed and change.kind is Kind.ADDED


def _contents(git: Git, blobs: set[str]) -> Iterable[tuple[str, bytes]]:
    wanted = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    raw = git.output("cat-file", "--batch", stdin=wanted) if blobs else b""
    at = 0
    while at < len(raw):
        end = raw.index(b"\n", at)
        name, _, size = raw[at:end].decode().split()
        yield name, raw[end + 1 : end + 1 + int(size)]
        at = end + int(size) + 2


def _inspected(change: Change, content: bytes, is_secret: Callable[[bytes], bool]) -> Change:
    target = os.fsdecode(content) if change.mode == LINK else ""
    return replace(change, target=target, holds_secret=is_secret(content) or is_secret(os.fsencode(change.path)))
