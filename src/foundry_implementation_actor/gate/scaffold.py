"""`make`: the only door that creates a file. It creates all the files of a thing or none of them.

A make first writes down which files and folders it is about to create (`.foundry/make/record.json`).
What a killed make left is taken away by the next one, or by `recover`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import digest
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.plan import Files, Unmade, planned
from foundry_implementation_actor.gate.state import (
    hold,
    kept_folder,
    kept_json,
    state_folder,
    unwritable,
    write_durably,
)
from foundry_implementation_actor.system.files import is_below, parent_below, read_below

_FOLDER = "make"
_LOCK = "lock"
_RECORD = "record.json"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


Barred = Callable[[str], str]
"""Why nothing may be written to a path below the root; empty when something may."""


@dataclass(frozen=True)
class Made:
    """The new files, by their paths below the root; `written` is false after a dry run."""

    files: Files
    written: bool


def make(
    house: House, kind: str, plugin: str, name: str = "", *, dry_run: bool = False, barred: Barred = lambda _: ""
) -> Made | Unmade:
    """Create a plugin, a class or a test; see `planned` for the other arguments.

    Args:
        house: the app.
        kind: what to make.
        plugin: where.
        name: what to call it.
        dry_run: only say what would be made.
        barred: see `Barred`.

    Raises:
        ActorError: BAD_REQUEST when no app could be given that; UNFIT when a file cannot be written. Nothing is
            left of it then.
    """
    if dry_run:
        plan = _allowed(planned(house, kind, plugin, name), barred)
        return plan if isinstance(plan, Unmade) else Made(plan, written=False)
    folder = state_folder(house.root, _FOLDER)
    with hold(folder, _LOCK):
        _undo(house.root, folder / _RECORD)
        # Planned under the lock, so that two calls at once do not both find the name free.
        plan = _allowed(planned(house, kind, plugin, name), barred)
        return plan if isinstance(plan, Unmade) else _write(house.root, plan, folder / _RECORD)


def _allowed(plan: Files | Unmade, barred: Barred) -> Files | Unmade:
    because = "" if isinstance(plan, Unmade) else next(filter(None, map(barred, plan)), "")
    return Unmade(because) if because else plan


def recover(root: Path) -> list[str]:
    """Take away what a killed make left; says so, a line for each file."""
    folder = kept_folder(root, _FOLDER)
    if folder is None:
        return []
    with hold(folder, _LOCK):
        return _undo(root, folder / _RECORD)


def _write(root: Path, files: Files, record: Path) -> Made | Unmade:
    written = {"files": {path: digest(text) for path, text in files.items()}, "folders": _new_folders(root, files)}
    try:
        write_durably(record, json.dumps(written).encode())
        for path, text in files.items():
            _create(root, path, text)
    except FileExistsError as error:
        _undo(root, record)
        return Unmade(f"{error.filename2 or error.filename} is there already, and nothing is overwritten")
    except OSError as error:
        _undo(root, record)
        raise unwritable(error, root / next(iter(files))) from error
    record.unlink(missing_ok=True)
    return Made(files, written=True)


def _create(root: Path, path: str, text: bytes) -> None:
    """Write a file aside and give it its name, unless the name is taken."""
    with parent_below(root, path, create=True) as (folder, name):
        aside = _aside(name)
        try:
            with os.fdopen(os.open(aside, _NEW, 0o666, dir_fd=folder), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=folder)
        os.fsync(folder)


def _new_folders(root: Path, files: Files) -> list[str]:
    """The folders that have to be made, inner ones last."""
    above = {str(folder) for path in files for folder in PurePosixPath(path).parents}
    return sorted(folder for folder in above if not os.path.lexists(root / folder))


def _undo(root: Path, record: Path) -> list[str]:
    """Take away the files of a record that are still as they were made, and the folders that are empty then."""
    try:
        files, folders = _read(record)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        hint = "look at the files it names and delete it"
        raise ActorError(Code.UNFIT, "is no record of a make", hint=hint, where=str(record)) from error
    said = [f"{path}: removed, its make was cut" for path, made in files.items() if _remove(root, path, made)]
    for folder in reversed(folders):
        with contextlib.suppress(OSError), parent_below(root, folder) as (above, name):
            os.rmdir(name, dir_fd=above)
    try:
        record.unlink()
    except OSError as error:
        raise unwritable(error, record) from error
    return said


def _read(record: Path) -> tuple[dict[str, str], list[str]]:
    """The files and folders of a record. It may have come with the app: a path that leads out of it is not obeyed."""
    found = kept_json(record)
    files, folders = dict(found["files"].items()), list(found["folders"])
    if not all(map(is_below, (*files, *folders))):
        raise ValueError("a make writes below the root")
    return files, folders


def _remove(root: Path, path: str, made: str) -> bool:
    with contextlib.suppress(OSError), parent_below(root, path) as (folder, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_aside(name), dir_fd=folder)
        content = read_below(root, path, 64 * 1024)
        if content is not None and digest(content) == made:
            os.unlink(name, dir_fd=folder)
            return True
    return False


def _aside(name: str) -> str:
    return f".{name}.making"
