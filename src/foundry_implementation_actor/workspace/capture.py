"""What a session changed, decided by a git directory that it could not touch.

The trusted index holds the base as it was checked out. After the session the tree is compared with
it (`survey`), which reads no file that did not change. What changed inside the roots is then hashed
into a copy of the base's index (`stage`), so that the commit's tree is the base's own tree with
those changes and nothing else (`staged_tree`). Renames are off: both sides count.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from foundry_implementation_actor.domain.change import ABSENT, GITLINK, LINK, Change, Kind
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.checkout import Checkout, settle

_NO_BLOB = "0" * 40
_KINDS = {"A": Kind.ADDED, "D": Kind.DELETED, "M": Kind.CHANGED, "T": Kind.CHANGED}

Unholdable = tuple[str, str]
"""A path that no commit can hold, and why."""


@dataclass(frozen=True)
class Prepared:
    """The state before the session: base commit, submodules, and the SHA-256 of each grounding file."""

    base: str
    submodules: tuple[str, ...]
    grounding: Mapping[str, bytes]


@dataclass(frozen=True)
class Survey:
    """What the session left, by path: changes inside and outside of the roots, sizes known, unread."""

    inside: tuple[Change, ...]
    outside: tuple[Change, ...]
    unholdable: tuple[Unholdable, ...]


def prepare(checkout: Checkout, base: str, grounding: Mapping[str, bytes]) -> Prepared:
    """Record the tree as it is before the session; call it last, nothing else may write in between.

    Submodules leave the index here, so that no later git looks into a directory that a session
    could turn into a repository with its own configuration.
    """
    git = checkout.git
    entries = git.records("ls-files", "--stage", "-z")
    submodules = tuple(entry.partition("\t")[2] for entry in entries if entry.startswith(GITLINK))
    if submodules:
        git.output("update-index", "--force-remove", "-z", "--stdin", stdin=_joined(submodules))
    # Git reads again what was written in the same second as its index. All of it was written before
    # this moment and the session comes after, so the index is from now.
    os.utime(checkout.index)
    return Prepared(base, submodules, grounding)


def survey(checkout: Checkout, prepared: Prepared, roots: Sequence[str], scratch: Sequence[str]) -> Survey:
    """Compare the tree with what was prepared, by path. Nothing of the session's own git is read.

    Args:
        checkout: the run's tree and trusted git.
        prepared: what `prepare` returned.
        roots: the component roots, each ending in `/`.
        scratch: directories (ending in `/`) whose untracked files count for nothing.
    """
    tracked = _tracked(checkout, prepared)
    if not all(_under(change.path, roots) for change in tracked):
        # A file that was only touched is listed too, until git has looked into it.
        checkout.git.attempt("update-index", "-q", "--refresh")
        tracked = _tracked(checkout, prepared)
    others = checkout.git.records("ls-files", "--others", "--exclude-standard", "-z")
    new = [path for path in others if not _under(path, scratch) and not _is_grounding(checkout, prepared, path)]
    unholdable = [(path, "is a git repository of its own") for path in new if path.endswith("/")]
    unholdable += [(path, "is a submodule, which a session may not fill") for path in _filled(checkout, prepared)]
    blocked = (_blocked(checkout, root) for root in roots)
    unholdable += [(path, "is a link or a file in place of a directory") for path in blocked if path]
    found = [*tracked, *(Change(path, Kind.ADDED, ABSENT, "") for path in new if not path.endswith("/"))]
    changes = []
    for change in found:
        seen, why = _looked_at(checkout, change)
        changes.append(seen)
        unholdable += [(change.path, why)] if why else []
    return Survey(
        inside=tuple(change for change in changes if _under(change.path, roots)),
        outside=tuple(change for change in changes if not _under(change.path, roots)),
        unholdable=tuple(dict.fromkeys(unholdable)),
    )


def stage(
    checkout: Checkout, prepared: Prepared, inside: Sequence[Change]
) -> tuple[tuple[Change, ...], list[Unholdable]]:
    """Hash what changed inside the roots: the changes with modes and blobs, and what git refused."""
    git, apart = checkout.git, {"GIT_INDEX_FILE": str(checkout.base_index)}
    paths = [change.path for change in inside if change.kind is not Kind.DELETED]
    _start_over(git, inside, apart)
    options = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
    done = git.attempt(*options, stdin=_joined(paths), extra=apart)
    if not done.ok:
        return (), [("", f"git cannot take it in: {done.errors}")]
    settle(checkout.base_index)
    raw = git.records("diff-index", "--cached", "--no-renames", "-r", "--raw", "-z", prepared.base, extra=apart)
    staged = _compared(raw)
    sizes = {change.path: change.size for change in inside}
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


def staged_tree(checkout: Checkout) -> str:
    """The tree of the commit, the base's with what was staged; its object id."""
    return checkout.git.text("write-tree", extra={"GIT_INDEX_FILE": str(checkout.base_index)})


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


def _tracked(checkout: Checkout, prepared: Prepared) -> list[Change]:
    raw = checkout.git.records("diff-files", "--no-renames", "--ignore-submodules=all", "--raw", "-z")
    return [change for change in _compared(raw) if not _is_grounding(checkout, prepared, change.path)]


def _is_grounding(checkout: Checkout, prepared: Prepared, path: str) -> bool:
    """Whether a path is a grounding file that is still as the actor wrote it."""
    written, place = prepared.grounding.get(path), checkout.tree / path
    if written is None or place.is_symlink() or not place.is_file():
        return False
    return hashlib.sha256(place.read_bytes()).digest() == written


def _start_over(git: Git, inside: Sequence[Change], apart: Mapping[str, str]) -> None:
    """Take what was deleted out of the index, and make git read the other files again.

    A changed file's size and time may be those of the base. A deleted path may lie beyond what is a
    link now, where git would not go to see that it is gone.
    """
    gone = [f"0 {_NO_BLOB}\t{change.path}" for change in inside if change.kind is Kind.DELETED]
    changed = [change for change in inside if change.kind is Kind.CHANGED]
    records = [*gone, *(f"{change.mode_before} {change.blob_before}\t{change.path}" for change in changed)]
    if records:
        git.output("update-index", "-z", "--index-info", stdin=_joined(records), extra=apart)


def _compared(records: list[str]) -> list[Change]:
    """The changes of git's raw output: alternating `:modes blobs status` and path."""
    changes = []
    for meta, path in zip(records[::2], records[1::2], strict=True):
        mode_before, mode, blob_before, blob, status = meta.removeprefix(":").split()
        before = (mode_before, blob_before) if status != "A" else ("", "")
        changes.append(Change(path, _KINDS[status[0]], mode, "" if mode == ABSENT else blob, *before))
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


def _looked_at(checkout: Checkout, change: Change) -> tuple[Change, str]:
    """The change with its size and link target as they lie in the tree, and why no commit can hold it."""
    place = checkout.tree / change.path
    try:
        found = os.lstat(place)
    except OSError:
        return change, ""
    if stat.S_ISDIR(found.st_mode):
        return change, "is a git repository of its own" if os.path.lexists(place / ".git") else ""
    if stat.S_ISLNK(found.st_mode):
        return replace(change, size=found.st_size, target=str(place.readlink())), ""
    if not stat.S_ISREG(found.st_mode):
        return change, "is a pipe, a socket or a device"
    return replace(change, size=found.st_size), "" if os.access(place, os.R_OK) else "cannot be read"


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
