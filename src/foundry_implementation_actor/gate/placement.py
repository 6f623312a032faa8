"""Judging without namespaces: the candidate stands at its live path while one command runs.

Before anything is moved, a record in `.foundry/journal/` says what will be, durably. The original
file itself (its inode, so mode, owner and times too) waits beside the record and is renamed back. A
process that is killed in between leaves the record; `recover` reads it. One lock for an app means
that a record which is there when the lock is held belongs to nobody alive.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.unit import digest
from foundry_implementation_actor.gate.limits import bounded, limited, missing_program, private
from foundry_implementation_actor.gate.state import hold, kept_folder, state_folder, sync_folder, write_durably
from foundry_implementation_actor.system.files import remove_tree
from foundry_implementation_actor.system.process import Stop, run_contained

_FOLDER = "journal"
_LOCK = "lock"


class Placement:
    """A `Run` without isolation: one command at a time, each with the original back before it returns."""

    def __init__(self, app: App, files: Mapping[str, bytes], note: str, stop: Stop | None = None) -> None:
        self._app = app
        self._stop = stop
        self._files = files
        self.note = note

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        absent = missing_program(command)
        if absent is not None:
            return absent
        folder = tempfile.mkdtemp(prefix="gate-")
        try:
            with undisturbed(self._app.root):
                with _placed(self._app.root, {} if original else self._files):
                    # Compiled code of the original may pass for the candidate's: same size, same second.
                    env = private(command.env, folder) | {"PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
                    completed = run_contained(replace(bounded(command), argv=limited(command.argv), env=env), self._stop)
                return replace(completed, argv=command.argv)
        finally:
            remove_tree(Path(folder))


@contextlib.contextmanager
def undisturbed(root: Path) -> Iterator[None]:
    """Hold the app while no candidate stands in it; what a killed process left is undone first.

    Whoever reads or lands a live file on a host without namespaces does it inside of this.
    """
    folder = state_folder(root, _FOLDER)
    with hold(folder, _LOCK):
        _undo_all(root, folder)
        yield


def recover(root: Path) -> list[str]:
    """Take away every candidate that a killed process left at its live path; a line for each."""
    folder = kept_folder(root, _FOLDER)
    if folder is None or not any(folder.glob("*.json")):
        return []
    with hold(folder, _LOCK):
        return _undo_all(root, folder)


@contextlib.contextmanager
def _placed(root: Path, files: Mapping[str, bytes]) -> Iterator[None]:
    folder = state_folder(root, _FOLDER)
    records = []
    try:
        for path, content in files.items():
            records.append(_record(root, folder, path, content))
            _place(root / path, content, records[-1])
        yield
    finally:
        for record in reversed(records):
            _undo(root, record)


def _record(root: Path, folder: Path, path: str, content: bytes) -> Path:
    record = folder / f"{secrets.token_hex(8)}.json"
    _keep(root / path, record.with_suffix(".original"))
    write_durably(record, json.dumps({"path": path, "candidate": digest(content)}).encode())
    return record


def _keep(live: Path, kept: Path) -> None:
    """Give the live file a second name; a copy where the filesystem has no second names."""
    try:
        os.link(live, kept, follow_symlinks=False)
    except OSError:
        _copy(live, kept)


def _copy(source: Path, target: Path) -> None:
    found = source.stat()
    shutil.copy2(source, target)
    with contextlib.suppress(PermissionError):
        os.chown(target, found.st_uid, found.st_gid)
    shutil.copystat(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _place(live: Path, content: bytes, record: Path) -> None:
    aside = live.with_name(f".{record.stem}.candidate")
    try:
        aside.write_bytes(content)
        aside.chmod(live.stat().st_mode & 0o777)
        aside.replace(live)
    finally:
        aside.unlink(missing_ok=True)


def _undo_all(root: Path, folder: Path) -> list[str]:
    done = [_undo(root, record) for record in sorted(folder.glob("*.json"))]
    for orphan in folder.glob("*.original"):
        # Kept, but the record was never written: nothing was placed.
        orphan.unlink(missing_ok=True)
    return done


def _undo(root: Path, record: Path) -> str:
    """Put the original back, unless somebody else wrote the live file meanwhile: that is kept aside."""
    said = json.loads(record.read_bytes())
    live, kept = root / said["path"], record.with_suffix(".original")
    live.with_name(f".{record.stem}.candidate").unlink(missing_ok=True)
    what = "was in its place"
    if kept.exists():
        if live.exists() and not live.samefile(kept):
            what = "is back in its place"
            found = digest(live.read_bytes())
            if found not in {said["candidate"], digest(kept.read_bytes())}:
                other = record.with_suffix(".found")
                _copy(live, other)
                what += f"; what somebody wrote over the candidate is kept as {other.relative_to(root)}"
        _put_back(kept, live)
    record.unlink()
    sync_folder(record.parent)
    return f"{said['path']}: the original {what}"


def _put_back(kept: Path, live: Path) -> None:
    try:
        kept.replace(live)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        aside = live.with_name(f".{kept.stem}.original")
        _copy(kept, aside)
        aside.replace(live)
    # Renaming a file onto a second name of itself does nothing and leaves both.
    kept.unlink(missing_ok=True)
    sync_folder(live.parent)
