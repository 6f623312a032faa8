"""What lies in a tree that a session has left, looked at without git."""

from __future__ import annotations

import errno
import filecmp
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.change import Change, Kind

Unholdable = tuple[str, str]
"""A path that no commit can hold, and why."""

_RULES = {".gitignore", ".gitattributes"}
# Without "too many levels of symbolic links": nothing lies behind a circle, and its links are listed themselves.
_SYSTEM_ERRORS = {os.strerror(number) for number in errno.errorcode if number != errno.ELOOP}
_UNREAD = re.compile(r"(?P<path>.*): (?P<why>[^:]+)")
# Git cuts its own warnings at 4,096 bytes, so the end of a long one is missing.
_UNREAD_FOLDER = re.compile(r"warning: could not open directory '(?P<path>.*?)(?:/': (?P<why>[^:]+)|$)")
_UNREAD_RULES = "warning: unable to access '"


def looked_at(tree: Path, change: Change) -> tuple[Change, str]:
    """The change with its size and link target as they lie in the tree, and why no commit can hold it."""
    place = tree / change.path
    try:
        found = place.lstat()
    except OSError as error:
        return change, "" if change.kind is Kind.DELETED else f"cannot be read: {error.strerror}"
    if stat.S_ISDIR(found.st_mode):
        return change, "is a git repository of its own" if os.path.lexists(place / ".git") else ""
    if stat.S_ISLNK(found.st_mode):
        return replace(change, size=found.st_size, target=str(place.readlink())), ""
    if not stat.S_ISREG(found.st_mode):
        return change, "is a pipe, a socket or a device"
    return replace(change, size=found.st_size), "" if os.access(place, os.R_OK) else "cannot be read"


def filled(tree: Path, submodules: Sequence[str]) -> Iterator[str]:
    """The submodules whose directory is no longer empty or is something else now."""
    for path in submodules:
        place = tree / path
        if place.is_symlink() or place.is_file() or (place.is_dir() and any(place.iterdir())):
            yield path


def blocked(tree: Path, root: str) -> str:
    """The first part of a root that is there but is no directory, as a repository path; else empty."""
    path = PurePosixPath()
    for part in PurePosixPath(root).parts:
        path /= part
        place = tree / path
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return str(path)
    return ""


def are_same(one: Path, other: Path) -> bool:
    """Whether both are regular files with the same bytes."""
    try:
        if not all(stat.S_ISREG(place.lstat().st_mode) for place in (one, other)):
            return False
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def unread(errors: str) -> Iterator[Unholdable]:
    """What git passed over, from its stderr: it goes on without what the system would not let it see.

    Its own words about rules that it could not read are not meant: without them it sees more.
    """
    for line in errors.splitlines():
        folder, path = _UNREAD_FOLDER.fullmatch(line), _UNREAD.fullmatch(line)
        if folder:
            yield f"{folder['path']}/", f"cannot be read: {folder['why'] or 'its name is too long'}"
        elif path and path["why"] in _SYSTEM_ERRORS and not line.startswith(_UNREAD_RULES):
            yield path["path"], f"cannot be read: {path['why']}"


def pipes(tree: Path, until: float = math.inf) -> Iterator[str]:
    """The files of rules that are pipes, sockets or devices; git would wait for ever on one of them.

    Looks until that moment of the monotonic clock.
    """
    folders = [tree]
    while folders and time.monotonic() < until:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.name in _RULES and not entry.is_symlink() and not entry.is_file():
                        yield str(Path(entry.path).relative_to(tree))
        except OSError:  # git cannot enter it either, and says so
            continue
