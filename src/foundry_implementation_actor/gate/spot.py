"""The one file that a body lands in, held open by its folder so that no link can be slipped in."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.system.files import LinkInTheWayError, parent_below

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Spot:
    """A body and its file: the open folder, the file's name, and how the file was when it was compared."""

    body: Candidate
    folder: int
    name: str
    found: os.stat_result
    attributes: dict[str, bytes]

    def write_aside(self, aside: str) -> None:
        """Write the new body beside the file, durably, with the file's mode, owner and attributes."""
        self._write(aside, self.body.content)

    def keep(self, kept: str) -> None:
        """Give the old body a second name, so that it can come back as it was."""
        try:
            os.link(self.name, kept, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        except OSError:
            # A filesystem without hard links, or one that refuses them on files of others.
            self._write(kept, self.body.original)
            times = (self.found.st_atime_ns, self.found.st_mtime_ns)
            os.utime(kept, ns=times, dir_fd=self.folder)

    def put(self, aside: str) -> None:
        """Rename the body that lies aside over the file."""
        os.rename(aside, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def drop(self, name: str) -> None:
        """Remove a name from the folder; gone is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.folder)

    def sync(self) -> None:
        """Make the names in the folder durable."""
        os.fsync(self.folder)

    def _write(self, name: str, content: bytes) -> None:
        with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=self.folder), "wb") as file:
            file.write(content)
            file.flush()
            self._dress(file.fileno())
            os.fsync(file.fileno())

    def _give_back(self, descriptor: int) -> None:
        try:
            os.fchown(descriptor, self.found.st_uid, self.found.st_gid)
        except PermissionError as error:
            said = f"the file is of {_owner(self.found.st_uid)}, and only that user or root can land in it"
            raise PermissionError(error.errno, said) from error

    def _dress(self, descriptor: int) -> None:
        made = os.fstat(descriptor)
        if (made.st_uid, made.st_gid) != (self.found.st_uid, self.found.st_gid):
            self._give_back(descriptor)
        os.fchmod(descriptor, stat.S_IMODE(self.found.st_mode))
        for attribute, value in self.attributes.items():
            with contextlib.suppress(OSError):  # a security label may be the system's to set
                os.setxattr(descriptor, attribute, value)
        if made.st_size == self.found.st_size and int(made.st_mtime) <= int(self.found.st_mtime):
            # Python takes compiled code for fresh when size and second are the same.
            later = (int(self.found.st_mtime) + 1) * 1_000_000_000
            os.utime(descriptor, ns=(later, later))


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def open_spot(root: Path, body: Candidate, open_files: ExitStack) -> Spot | str:
    """The file of a body, compared with what the body was judged against; or why it is another."""
    try:
        folder, name = open_files.enter_context(parent_below(root, body.place.path))
        with open_regular(folder, name) as file:
            if file is None:
                return "is no regular file"
            found = os.fstat(file.fileno())
            attributes = {attribute: os.getxattr(file.fileno(), attribute) for attribute in os.listxattr(file.fileno())}
            spot = Spot(body, folder, name, found, attributes)
            return _fault(spot, file.read()) or spot
    except FileNotFoundError:
        return "is gone"
    except LinkInTheWayError:
        return "lies behind a link"
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link"
        return f"cannot be read: {error.strerror}"


@contextlib.contextmanager
def open_regular(folder: int, name: str) -> Iterator[BinaryIO | None]:
    """A file of an open folder, if it is a regular one; a pipe or a device is not waited for.

    Raises:
        OSError: it is not there, is a link, or cannot be opened.
    """
    descriptor = os.open(name, _READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _fault(spot: Spot, content: bytes) -> str:
    if content != spot.body.original:
        return "was changed by somebody else while the body was judged"
    if not spot.found.st_mode & stat.S_IWUSR:
        # The bit, not whether this process could write: root could, and a rename asks nobody.
        return "is read-only; give its owner the right to write (chmod u+w) to let it be replaced"
    return ""


def read_live(root: Path, path: str) -> bytes | None:
    """The bytes of a regular file below the root, reached through no link; None when there is none."""
    try:
        with parent_below(root, path) as (folder, name), open_regular(folder, name) as file:
            return file.read() if file is not None else None
    except OSError:
        return None
