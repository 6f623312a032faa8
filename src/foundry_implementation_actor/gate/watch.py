"""What has changed on disk since one looked last: of an app's Python files, and of what it is installed with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_SUFFIXES = (".py", ".pyi")
_SKIPPED = frozenset({"__pycache__", "node_modules"})


class Stamp(NamedTuple):
    """What tells one state of a file from another."""

    modified: int
    changed: int
    inode: int
    size: int


Stamps = dict[str, Stamp]


class Changes(NamedTuple):
    """Paths that came, changed and went; `unlike` says that a file changed although its time did not."""

    created: list[str]
    changed: list[str]
    deleted: list[str]
    unlike: bool


def look(folders: Sequence[str]) -> Stamps:
    """Every Python file below these folders. Links to folders, hidden folders and environments are left out."""
    found: Stamps = {}
    for folder in folders:
        _look(folder, found)
    return found


def _look(folder: str, found: Stamps) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        inside = []
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                found[entry.path] = _stamp(entry.stat())
            elif entry.name == "pyvenv.cfg":
                return
            elif entry.name[0] != "." and entry.name not in _SKIPPED and entry.is_dir():
                inside.append(entry.path)
        for path in inside:
            if not os.path.islink(path):  # noqa: PTH114 - texts, a thousand of them
                _look(path, found)


def stamps(paths: Sequence[str]) -> Stamps:
    """Those of these files or folders that are there."""
    return {path: _stamp(os.stat(path)) for path in paths if os.path.exists(path)}  # noqa: PTH110, PTH116 - texts


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size)


def between(before: Stamps, now: Stamps) -> Changes:
    """What is different."""
    changed = [path for path, stamp in now.items() if path in before and before[path] != stamp]
    unlike = any(before[path].modified == now[path].modified for path in changed)
    return Changes([path for path in now if path not in before], changed, [p for p in before if p not in now], unlike)


def installed(interpreter: str) -> Stamps:
    """The packages of an interpreter's environment, each as its folder was last changed."""
    found: Stamps = {}
    for folder in _site_packages(interpreter):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found |= {entry.path: _stamp(entry.stat()) for entry in entries if entry.name != "__pycache__"}
    return found


def linked(interpreter: str) -> list[str]:
    """The folders that an environment's `.pth` files add: packages that are installed to be worked on."""
    folders = []
    for folder in _site_packages(interpreter):
        for file in folder.glob("*.pth"):
            with contextlib.suppress(OSError):
                lines = file.read_text(errors="replace").splitlines()
                folders += [os.path.normpath(folder / line) for line in lines if line and (folder / line).is_dir()]
    return sorted(set(folders))


def _site_packages(interpreter: str) -> Iterator[Path]:
    for program in {Path(interpreter), Path(os.path.realpath(interpreter))}:
        for below in ("lib", "lib64", "local/lib"):
            yield from (program.parents[1] / below).glob("python3*/*-packages")
