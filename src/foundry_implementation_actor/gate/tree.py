"""Looking through an app's folders: never through a link, never further than the folder that is named."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import LinkInTheWayError, parent_below

MAX_DEPTH = 64
"""Folders in folders; what lies deeper is not looked at, and neither are larger files than this."""
MAX_BYTES = 4 * 1024 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Wanted = Callable[[str], bool]
"""Whether a folder of this name is entered, or a file of this name is given."""


class Tree(NamedTuple):
    """A plugin's own folders below the app's root; `source` may also be the file of its one module."""

    source: str
    tests: str


@dataclass(frozen=True)
class File:
    """A regular file that was come across; it can be read until the next one is asked for."""

    path: str
    _name: str
    _folder: int

    def read(self) -> bytes:
        """What stands in it; nothing when it is too large, or gone, or a link by now."""
        with contextlib.suppress(FileNotFoundError, PermissionError, LinkInTheWayError):
            return _read(self._folder, self._name)
        return b""


@dataclass(frozen=True)
class Look:
    """What a look below one folder is for.

    `folder` is relative to `root`, or is one file. `file` and `inner` choose the files and the
    folders in it by their names. `without` is a folder, relative to the root, that is left out.
    """

    root: Path
    folder: str
    file: Wanted
    inner: Wanted
    without: str = ""

    def files(self) -> Iterator[File]:
        """Each file, folder by folder, in the order of their names; none when there is no such folder.

        Raises:
            ActorError: BAD_REQUEST when the folder, or one on the way to it, is a link; UNFIT when
                one cannot be read.
        """
        try:
            yield from self._alone() if self._is_file() else self._all()
        except FileNotFoundError:
            return
        except LinkInTheWayError as error:
            hint = "the gate follows no link; put a real folder there"
            raise ActorError(Code.BAD_REQUEST, "is or lies behind a link", hint=hint, where=self.folder) from error
        except OSError as error:
            raise ActorError(Code.UNFIT, f"cannot be searched: {error.strerror}", where=self.folder) from error

    def _all(self) -> Iterator[File]:
        # The last name given is not opened: it only says that the folder itself is wanted.
        with parent_below(self.root, f"{self.folder}/_") as (descriptor, _):
            yield from self._in_folder(descriptor, "" if self.folder == "." else f"{self.folder}/", MAX_DEPTH)

    def _in_folder(self, descriptor: int, prefix: str, depth: int) -> Iterator[File]:
        with os.scandir(descriptor) as entries:
            found = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in entries
            )
        for name, is_folder, is_file in found:
            if is_file and self.file(name):
                yield File(prefix + name, name, descriptor)
            elif is_folder and depth and self.inner(name) and prefix + name != self.without:
                yield from self._in_inner(descriptor, prefix + name, name, depth)

    def _in_inner(self, outer: int, path: str, name: str, depth: int) -> Iterator[File]:
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=outer)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENOTDIR}:  # gone, or replaced meanwhile
                return
            raise
        try:
            yield from self._in_folder(descriptor, f"{path}/", depth - 1)
        finally:
            os.close(descriptor)

    def _is_file(self) -> bool:
        try:
            return stat.S_ISREG(os.lstat(self.root / self.folder).st_mode)
        except OSError:
            return False

    def _alone(self) -> Iterator[File]:
        """The one file that `folder` is."""
        with parent_below(self.root, self.folder) as (descriptor, name):
            if self.file(name):
                yield File(self.folder, name, descriptor)


def is_there(root: Path, path: str) -> bool:
    """Whether a folder or a regular file is there without a link on the way; `.` is the root itself."""
    if path == ".":
        return True
    with contextlib.suppress(OSError), parent_below(root, path) as (folder, name):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    return False


def _read(folder: int, name: str) -> bytes:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkInTheWayError(errno.ELOOP, "is a link", name) from error
        raise
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size  # read by its size: a buffer for the largest would cost more than the read
        return file.read(size) or b"" if size <= MAX_BYTES else b""


def names_below(root: Path, folder: str) -> list[str]:
    """The names of the real folders in a folder; none where it cannot be read or lies behind a link."""
    with (
        contextlib.suppress(OSError),
        parent_below(root, f"{folder}/_") as (descriptor, _),
        os.scandir(descriptor) as entries,
    ):
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return []
