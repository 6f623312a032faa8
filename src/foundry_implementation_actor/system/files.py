"""Files and directories of the actor's own: written aside and renamed, locked, never through links."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.error import ActorError, Code

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_DESCRIPTOR_PATIENCE_S = 5.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LinkInTheWayError(OSError):
    """A path below a root runs through a symbolic link (or through a file) and was not followed."""


def is_below(relative: str) -> bool:
    """Whether a path, as it is written, names something below the folder that it starts from."""
    parts = PurePosixPath(relative).parts
    return bool(parts) and ".." not in parts and not relative.startswith("/") and "\0" not in relative


@contextlib.contextmanager
def parent_below(root: Path, relative: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The directory that holds `root/relative`, opened name by name through no link, and the last name.

    Raises:
        LinkInTheWayError: a directory on the way is a link or a file, or the path is none below a root.
        OSError: a directory on the way cannot be opened (or made, with `create`).
    """
    if not is_below(relative):
        raise LinkInTheWayError(errno.EINVAL, "is no path below a folder", relative)
    *folders, name = PurePosixPath(relative).parts
    descriptor = os.open(root, _DIRECTORY)
    try:
        for folder in folders:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=descriptor)
            try:
                inner = os.open(folder, _DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                    raise LinkInTheWayError(errno.ELOOP, "is a link or a file, not a directory", folder) from error
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


def write_below(root: Path, relative: str, content: bytes) -> None:
    """Write `root/relative` whole, creating directories; a link in its place is replaced, not followed.

    Raises:
        LinkInTheWayError: a directory on the way is a link.
        OSError: it cannot be written.
    """
    with parent_below(root, relative, create=True) as (directory, name):
        aside = f".{name[:100]}.{os.getpid()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(aside, flags, 0o644, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=directory)
            raise


def read_below(root: Path, relative: str, limit: int) -> bytes | None:
    """At most `limit` bytes of the regular file `root/relative`; None when there is none there.

    A link is followed only as far as it stays inside `root`.
    """
    inside = Path(os.path.realpath(root / relative))
    real_root = Path(os.path.realpath(root))
    if not inside.is_relative_to(real_root):
        return None
    try:
        with parent_below(real_root, str(inside.relative_to(real_root))) as (directory, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
            with os.fdopen(descriptor, "rb") as file:
                regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                return file.read(limit) if regular else None
    except (OSError, ValueError):
        return None


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file of the actor's own by a whole new one, durably."""
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def writable(place: Path) -> Iterator[None]:
    """Whatever fails inside with an OSError means that the actor's own state cannot be written.

    Raises:
        ActorError: UNFIT naming `place`.
    """
    try:
        yield
    except OSError as error:
        hint = "set ACTOR_STATE to a directory with room that the actor may write"
        if error.errno in _NO_DESCRIPTOR:
            hint = "raise the limit of open files (ulimit -n), or lower MAX_SESSIONS"
        said = f"the actor's state cannot be written: {error.strerror}"
        raise ActorError(Code.UNFIT, said, hint=hint, where=str(place)) from error


def exhausted(error: OSError) -> ActorError | None:
    """What an error says about the host when it has no room left of some kind; None for any other error."""
    kinds = {
        **dict.fromkeys(_NO_DESCRIPTOR, "raise the limit of open files (ulimit -n), or lower MAX_SESSIONS"),
        **dict.fromkeys(
            (errno.ENOMEM, errno.EAGAIN), "give the actor more memory and processes, or lower MAX_SESSIONS"
        ),
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EROFS), "give the disk room, and let the actor write to it"),
    }
    hint = kinds.get(error.errno or 0)
    if hint is None:
        return None
    return ActorError(Code.UNFIT, f"the host has nothing left: {error.strerror}", hint=hint)


def ran_out(error: BaseException) -> bool:
    """Whether an error, or the one that it comes from, says that the host has no room left of some kind."""
    causes = (error, error.__cause__)
    return any(isinstance(one, MemoryError) or (isinstance(one, OSError) and exhausted(one)) for one in causes)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for it; the lock dies with the process."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock on a file until it is closed, or None when another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_tree(path: Path) -> None:
    """Delete a directory and all in it, also below directories that may not be entered; gone is fine.

    However deep it is: every directory is lifted to the top before it is emptied, so that two open
    directories and no recursion do. A link or a file in its place is deleted, and no link followed.

    Raises:
        OSError: something in it cannot be removed; everything else is.
    """
    give_up = time.monotonic() + _DESCRIPTOR_PATIENCE_S
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                _remove(path)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR or time.monotonic() > give_up:
                raise
            time.sleep(0.05)  # until others have closed theirs
        else:
            return


def _remove(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        path.unlink()
        return
    root = _entered(str(path))
    try:
        _empty(root)
    finally:
        os.close(root)
    path.rmdir()


def _empty(root: int) -> None:
    """Remove everything in an open directory; what cannot be removed is raised once all else is gone."""
    token, numbers, failed = secrets.token_hex(8), itertools.count(), list[OSError]()
    waiting = _cleared(root, failed)
    while waiting:
        name = waiting.pop()
        try:
            folder = _entered(name, root)
            try:
                for inner in _cleared(folder, failed):
                    lifted = f"{token}-{next(numbers)}"
                    os.close(_entered(inner, folder))  # nobody but root may move one that he may not write in
                    os.rename(inner, lifted, src_dir_fd=folder, dst_dir_fd=root)
                    waiting.append(lifted)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=root)
        except OSError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _cleared(folder: int, failed: list[OSError]) -> list[str]:
    """Delete everything in an open directory but its directories: their names."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name in [name for name, is_folder in found if not is_folder]:
        try:
            os.unlink(name, dir_fd=folder)
        except OSError as error:
            failed.append(error)
    return [name for name, is_folder in found if is_folder]


def _entered(name: str, parent: int | None = None) -> int:
    """A directory opened for its owner, whatever it permitted; the descriptor."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor, not a path
        return os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(place)
