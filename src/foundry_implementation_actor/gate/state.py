"""Where the gate keeps what is its own: `.foundry/` at the app's root, never imported, never autoloaded.

For an app whose tree is to hold nothing of the gate's, it is kept in another folder (`kept_in`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.json_text import read_json

FOLDER = ".foundry"
MOST_KEPT = 16 * 1024 * 1024
"""Bytes of one state file; nothing that the gate writes is as large."""

_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = frozenset({errno.ELOOP, errno.EISDIR, errno.ENOTDIR})

# A table and not an argument: everything that keeps state knows its app by the root alone.
_elsewhere: dict[Path, Path] = {}


@contextlib.contextmanager
def kept_in(root: Path, folder: Path) -> Iterator[None]:
    """Have this process keep the state of one app in a folder of the caller's, as long as the context is open.

    Args:
        root: the real path of the app.
        folder: there already, and on the same file system as the app.
    """
    assert root not in _elsewhere, "one process serves an app once at a time"
    _elsewhere[root] = folder
    try:
        yield
    finally:
        del _elsewhere[root]


def state_of(root: Path) -> Path:
    """Where the state of an app is, or would be."""
    return _elsewhere.get(root, root / FOLDER)


def told(root: Path, place: Path) -> str:
    """A place of an app's state, as a message names it."""
    return f"{FOLDER}/{place.relative_to(state_of(root))}"


def state_folder(root: Path, *names: str) -> Path:
    """The folder `.foundry/<names>` of an app, made when it is missing.

    Raises:
        ActorError: UNFIT when it cannot be made, or when one on the way is a link or a file.
    """
    folder = state_of(root)
    try:
        _make(folder, ignored=True)
        for name in names:
            folder /= name
            _make(folder)
    except OSError as error:
        raise unwritable(error, folder) from error
    return folder


def kept_folder(root: Path, *names: str) -> Path | None:
    """The same folder when it is there already, else None; a link counts as not there."""
    place = state_of(root)
    if not _is_folder(place):
        return None
    for name in names:
        place /= name
        if not _is_folder(place):
            return None
    return place


@contextlib.contextmanager
def hold(folder: Path, name: str) -> Iterator[None]:
    """Hold the exclusive lock `name` of a state folder, waiting for it; it dies with the process.

    Raises:
        ActorError: UNFIT when the lock's file cannot be made.
    """
    descriptor = _locked(folder / name, fcntl.LOCK_EX)
    assert descriptor is not None, "a lock that is waited for is held"
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def hold_now(folder: Path, name: str) -> Iterator[bool]:
    """Hold the lock `name` if it is free; gives whether it was."""
    descriptor = _locked(folder / name, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def read_kept(path: Path, most: int = MOST_KEPT) -> bytes:
    """The bytes of a state file, `most` of them at most; the folder may have come with the app, so no link is followed.

    Raises:
        OSError: it is not there, is no regular file, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _NO_LINK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        return file.read(most)


def kept_json(path: Path) -> Any:
    """The value of a state file.

    Raises:
        OSError: as `read_kept`.
        ValueError: it is no JSON that the gate could have written.
    """
    return read_json(read_kept(path).decode(), "it")


def write_durably(path: Path, content: bytes) -> None:
    """Replace a state file by a whole new one; when this returns, a power cut does not undo it."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o666), "wb") as file:
            file.write(content)
            give_to_owner(file.fileno(), path.parent)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def give_to_owner(descriptor: int, folder: Path) -> None:
    """Give an open state file to the owner of its folder, so that root's use of the gate locks nobody out."""
    if os.geteuid() != 0:
        return
    owner, found = folder.stat(), os.fstat(descriptor)
    linked = stat.S_ISREG(found.st_mode) and found.st_nlink > 1  # it may be anybody's file under a second name
    if (owner.st_uid, owner.st_gid) != (found.st_uid, found.st_gid) and not linked:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def give_place_to_owner(place: Path) -> None:
    """The same for a file or folder that is not open."""
    descriptor = os.open(place, os.O_RDONLY | _NO_LINK)
    try:
        give_to_owner(descriptor, place.parent)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(error: OSError, place: Path) -> ActorError:
    """What a caller is told when the gate's own state cannot be written."""
    because = error.strerror or str(error)
    what = "take that away" if error.errno in _IN_THE_WAY else "make room, or let the gate write there"
    hint = f"nothing was changed; {what}"
    return ActorError(Code.UNFIT, f"the gate cannot write: {because}", hint=hint, where=str(place))


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _make(folder: Path, *, ignored: bool = False) -> None:
    try:
        folder.mkdir()
        give_place_to_owner(folder)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            said = "is a link or a file where a folder should be"
            raise NotADirectoryError(errno.ENOTDIR, said) from None
        return
    if ignored:
        # Only in a folder that the gate made: one that was there may hold files somebody commits.
        (folder / ".gitignore").write_text("*\n")
        give_place_to_owner(folder / ".gitignore")


def _locked(path: Path, how: int) -> int | None:
    """A descriptor that holds the lock, or None when it is held elsewhere and was not to be waited for."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
        except OSError as error:
            raise unwritable(error, path) from error
        try:
            give_to_owner(descriptor, path.parent)
            fcntl.flock(descriptor, how)
            if _still_there(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _still_there(path: Path, descriptor: int) -> bool:
    """Whether the name still leads to the file that is locked; somebody may have deleted the folder."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
