"""The folder that a self-check, or a judge without namespaces, works in: gone afterwards, or when killed, at the next.

As root it may be given to the plain user meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from foundry_implementation_actor.sandbox.places import plain_user
from foundry_implementation_actor.system.files import remove_tree

PREFIX = "sandbox-check-"
_LONGEST = 60


@contextlib.contextmanager
def ground() -> Iterator[Path]:
    """A new folder, named through no link and locked while it is used; those of this user that are not locked go.

    Raises:
        OSError: no folder can be made.
    """
    above = _short()
    _sweep(above)
    base, lock = _locked(above)
    try:
        try:
            yield base
        finally:
            remove_tree(base)
    finally:
        os.close(lock)


def _short() -> Path:
    """Where temporary files go, or a place with a shorter name: that of a socket may have 107 bytes."""
    usual = os.path.realpath(tempfile.gettempdir())
    return Path(usual if len(os.fsencode(usual)) <= _LONGEST else os.path.realpath("/tmp"))  # noqa: S108 - mkdtemp makes it


def _locked(above: Path) -> tuple[Path, int]:
    """A new folder and a descriptor that holds its lock: another check may sweep it before it has one."""
    while True:
        base = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))
        with contextlib.suppress(FileNotFoundError):
            folder = _opened(base)
            with contextlib.suppress(OSError):  # a file system without locks: nobody sweeps there either
                fcntl.flock(folder, fcntl.LOCK_EX)
            if _stands(base, folder):
                return base, folder
            os.close(folder)


def _sweep(above: Path) -> None:
    """Remove what checks of this user left that were killed: their locks died with them."""
    owners = {os.getuid(), plain_user()[0]} if os.getuid() == 0 else {os.getuid()}
    for place in above.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            folder = _opened(place)
            try:
                if os.fstat(folder).st_uid in owners:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(place)
            finally:
                os.close(folder)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _stands(place: Path, folder: int) -> bool:
    return place.exists() and os.path.samestat(place.lstat(), os.fstat(folder))
