"""What directories take on disk, however deep and however strange, without following a link.

What counts is the room that is taken (blocks, so that a hole in a file counts for nothing) and the
number of files, directories and links. A file with several names counts once. What was deleted and is
still open takes room too: `held_open` finds it by the processes that hold it, but not what is only mapped
any more or on its way through a socket. A directory that is closed to its own user is opened to be looked
into, and stays so.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_BLOCK = 512
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Linux opens no path of more than 4,096 bytes: a deeper place is reached in several hops.
_HOP = 4_000

Enough = Callable[["Footprint"], bool]
"""Says, of what was found so far, whether there is no need to look further."""


class Footprint(NamedTuple):
    """Bytes taken on disk, and the number of files, directories and links."""

    size: int = 0
    files: int = 0

    def __add__(self, other: object) -> Footprint:
        """Both together."""
        assert isinstance(other, Footprint)
        return Footprint(self.size + other.size, self.files + other.files)


def footprint(places: Sequence[Path], enough: Enough = lambda _: False) -> Footprint:
    """What lies below these directories, which do not lie in one another.

    What cannot be looked into, or goes away meanwhile, counts as far as it was seen. `enough` is asked
    after each directory and every thousand files.
    """
    found, seen = Footprint(), set[tuple[int, int]]()
    for place in places:
        with contextlib.suppress(OSError):
            device = os.lstat(place).st_dev
            for part in _below(os.fsencode(place), device, seen):
                found += part
                if enough(found):
                    return found
    return found


def held_open(pids: Iterable[int], devices: Iterable[int]) -> Footprint:
    """The deleted files on these devices that the processes still hold open; those that may be looked into."""
    on, found = set(devices), dict[tuple[int, int], int]()
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with contextlib.suppress(OSError):
                    held = descriptor.stat()
                    if held.st_nlink == 0 and held.st_dev in on and stat.S_ISREG(held.st_mode):
                        found[held.st_dev, held.st_ino] = held.st_blocks * _BLOCK
    return Footprint(sum(found.values()), len(found))


def _below(root: bytes, device: int, seen: set[tuple[int, int]]) -> Iterator[Footprint]:
    """What each directory holds, in pieces; another file system below it is not entered."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError), _opened(folder) as descriptor, os.scandir(descriptor) as entries:
            size = files = 0
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:  # it went away meanwhile
                    continue
                if stat.S_ISDIR(found.st_mode):
                    if found.st_dev == device:
                        waiting.append(folder + b"/" + os.fsencode(entry.name))
                elif found.st_nlink > 1:
                    if (found.st_dev, found.st_ino) in seen:
                        continue
                    seen.add((found.st_dev, found.st_ino))
                size, files = size + found.st_blocks * _BLOCK, files + 1
                if files == 1_000:
                    yield Footprint(size, files)
                    size = files = 0
            yield Footprint(size, files)


@contextlib.contextmanager
def _opened(folder: bytes) -> Iterator[int]:
    """A directory, opened in as many hops as its path is long."""
    descriptor, rest = None, folder
    try:
        while rest:
            hop = rest if len(rest) <= _HOP else rest[: rest.rindex(b"/", 1, _HOP)]
            rest = rest[len(hop) :].lstrip(b"/")
            inner = _entered(hop, descriptor)
            if descriptor is not None:
                os.close(descriptor)
            descriptor = inner
        assert descriptor is not None, "a path has at least one hop"
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _entered(hop: bytes, start: int | None) -> int:
    place = os.open(hop, os.O_PATH | _DIRECTORY, dir_fd=start)
    try:
        itself = f"/proc/self/fd/{place}"
        if not os.access(itself, os.R_OK | os.X_OK, effective_ids=True):
            with contextlib.suppress(OSError):  # it is another user's
                os.chmod(itself, stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRUSR | stat.S_IXUSR)  # noqa: PTH101 - a descriptor, not a path
        return os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(place)
