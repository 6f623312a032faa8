"""The directory in which patches are kept: the newest of them, whole or not at all, never through a link."""

from __future__ import annotations

import contextlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

MOST_KEPT = 100
"""How many patches are kept; the oldest goes when there are more."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Whatever else an operator keeps in the same directory is none of this module's.
_OURS = re.compile(r".+-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z\.patch")


class Artifact(NamedTuple):
    """A patch, and the JSON record that stands beside it."""

    patch: bytes
    record: bytes


def store(folder: Path, task_id: str, moment: datetime, artifact: Artifact) -> Path:
    """Write `<task_id>-<UTC time>.patch` and the `.json` beside it, and let the oldest go: the patch's path.

    Args:
        folder: is made with mode 0700 when it is not there; may not be a link.
        task_id: one that names a branch, so that it is no path.
        moment: in UTC.
        artifact: what to write, each file with mode 0600.

    Raises:
        OSError: it cannot be written, or the folder is a link.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"{task_id}-{moment:%Y%m%dT%H%M%S.%fZ}"
    directory = os.open(folder, _DIRECTORY)
    try:
        try:
            _write(directory, f"{name}.json", artifact.record)  # first, so that no patch stands without it
            _write(directory, f"{name}.patch", artifact.patch)
            os.fsync(directory)
        except BaseException:
            _remove(directory, name)
            raise
        _let_go(directory, f"{name}.patch")
    finally:
        os.close(directory)
    return folder / f"{name}.patch"


def _write(directory: int, name: str, content: bytes) -> None:
    aside = f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=directory)
    descriptor = os.open(aside, _NEW, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=directory)
        raise


def _remove(directory: int, name: str) -> None:
    for one in (f"{name}.patch", f"{name}.json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(one, dir_fd=directory)


def _let_go(directory: int, newest: str) -> None:
    """Remove the oldest patches above the number that is kept, each with its record.

    `newest` stays, also when the clock was set back and it looks older than the others.
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and entry.name != newest and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    for _, name in sorted(found)[: 1 - MOST_KEPT]:
        _remove(directory, name.removesuffix(".patch"))
