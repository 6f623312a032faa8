"""Judging without namespaces: the candidate stands at its live path while one command runs, held if that can be.

Before anything is moved, a record in `.foundry/journal/` says what will be, durably. The original
file itself (its inode, so mode, owner and times too) waits beside the record and is renamed back. A
process that is killed in between leaves the record; `recover` reads it. A process that lives relies on
nothing that lies there: what it judges may run unheld, as the same user, and write to it. One lock for an app means
that a record which is there when the lock is held belongs to nobody alive.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import digest
from foundry_implementation_actor.gate import guard
from foundry_implementation_actor.gate.held import held
from foundry_implementation_actor.gate.limits import bounded, limited, missing_program, private
from foundry_implementation_actor.gate.state import (
    hold,
    kept_folder,
    kept_json,
    state_folder,
    sync_folder,
    told,
    write_durably,
)
from foundry_implementation_actor.sandbox.ground import ground
from foundry_implementation_actor.system.files import parent_below, remove_tree
from foundry_implementation_actor.system.process import Stop, run_contained

_FOLDER = "journal"
_LOCK = "lock"


class Placement:
    """A `Run` without isolation: one command at a time, each with the original back before it returns.

    A command that changes one of the `tests`, what sets them up, or the gate's own record of it is ended as
    TAMPERED, and all of it is put back. With `holds` no command can: see `held`.
    """

    def __init__(
        self,
        app: App,
        files: Mapping[str, bytes],
        note: str,
        stop: Stop | None = None,
        tests: Iterable[str] = (),
        *,
        holds: bool = False,
    ) -> None:
        self._app = app
        self._stop = stop
        self._files = files
        self._tests = tuple(tests)
        self._holds = holds
        self.note = note

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        absent = missing_program(command)
        if absent is not None:
            return absent
        with ground() as folder, undisturbed(self._app.root):
            # Compiled code of the original may pass for the candidate's: same size, same second.
            env = private(command.env, str(folder)) | {"PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
            whole = replace(bounded(command), argv=limited(command.argv), env=env)
            completed = self._run(whole, folder, original=original)
        return replace(completed, argv=command.argv)

    def _run(self, command: Command, folder: Path, *, original: bool) -> Completed:
        root = self._app.root
        changed: list[str] = []
        with _placed(root, {} if original else self._files, changed):
            seen = {} if original else guard.look(root, self._tests)
            with held(self._app, command, folder) if self._holds else contextlib.nullcontext(command) as ready:
                completed = run_contained(ready, self._stop)
            changed += [str(path.relative_to(root)) for path in guard.put_back(seen)]
        if not changed:
            return completed
        said = f"what was judged changed {', '.join(changed)}, which is put back\n".encode()
        return replace(completed, stdout=b"", stderr=said, ended=Ended.TAMPERED)


@dataclass(frozen=True)
class _Placed:
    """One candidate at its live path, as this process remembers it; its record is for others.

    What is judged can write to the record and to what waits beside it.
    """

    path: str
    record: Path
    original: guard.File
    candidate: bytes

    @property
    def kept(self) -> Path:
        return self.record.with_suffix(".original")


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
    if folder is None or not {path.suffix for path in folder.iterdir()} & {".json", ".original", ".new"}:
        return []
    with hold(folder, _LOCK):
        return _undo_all(root, folder)


@contextlib.contextmanager
def _placed(root: Path, files: Mapping[str, bytes], changed: list[str] | None = None) -> Iterator[None]:
    """Have the candidates stand at their live paths; `changed` gets what else was done to the gate's records."""
    folder = state_folder(root, _FOLDER)
    placed: list[_Placed] = []
    try:
        for path, content in files.items():
            placed.append(_record(root, folder, path, content))
            _place(root / path, content, placed[-1].record)
        yield
    finally:
        touched = False
        for one in reversed(placed):
            touched |= _take_back(root, one)
        touched |= _drop_forged(root)
        if touched and changed is not None:
            changed.append(told(root, folder))


def _record(root: Path, folder: Path, path: str, content: bytes) -> _Placed:
    record = folder / f"{secrets.token_hex(8)}.json"
    original = guard.remembered(root / path)
    if original is None:
        raise ActorError(Code.UNFIT, "is no file that can be read", where=str(root / path))
    _keep(root / path, record.with_suffix(".original"))
    said = {"path": path, "candidate": digest(content), "original": digest(original.content)}
    write_durably(record, json.dumps(said).encode())
    return _Placed(path, record, original, content)


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


def _take_back(root: Path, one: _Placed) -> bool:
    """Put the original back, from memory where it does not wait whole; whether somebody touched the records."""
    state_folder(root, _FOLDER)
    live, kept = root / one.path, one.kept
    (root / one.path).with_name(f".{one.record.stem}.candidate").unlink(missing_ok=True)
    whole = not kept.is_symlink() and kept.is_file() and kept.read_bytes() == one.original.content
    touched = not whole or not one.record.exists()
    if live.is_dir() and not live.is_symlink():
        live.rename(one.record.with_suffix(".found"))
    elif not (whole and live.exists() and live.samefile(kept)):
        _set_aside(live, one.record, {digest(one.candidate), digest(one.original.content)})
    if whole:
        _put_back(kept, live)
    else:
        remove_tree(kept)
        guard.restore(live, one.original)
    one.record.unlink(missing_ok=True)
    sync_folder(one.record.parent)
    return touched


def _set_aside(live: Path, record: Path, known: Container[str]) -> Path | None:
    """Keep what somebody else wrote to a live path meanwhile: where, or None when nobody did."""
    if live.is_symlink() or not live.is_file() or digest(live.read_bytes()) in known:
        return None
    other = record.with_suffix(".found")
    _copy(live, other)
    return other


def _drop_forged(root: Path) -> bool:
    """Take away records that came while this process held the lock: whoever runs in it wrote them."""
    forged = list(state_folder(root, _FOLDER).glob("*.json"))
    for record in forged:
        record.replace(record.with_suffix(".forged"))
    return bool(forged)


def _undo_all(root: Path, folder: Path) -> list[str]:
    for half in folder.glob(".*.new"):  # a record that was not whole yet: nothing had been placed
        remove_tree(half)
    done = [_undo(root, record) for record in sorted(folder.glob("*.json"))]
    return done + [said for orphan in sorted(folder.glob("*.original")) if (said := _orphaned(root, orphan))]


def _orphaned(root: Path, orphan: Path) -> str:
    """An original without a record: nothing was placed yet, or the record was deleted."""
    if orphan.lstat().st_nlink > 1:  # it stands at its live path as well
        orphan.unlink()
        return ""
    other = orphan.with_suffix(".found")
    orphan.rename(other)
    return f"{told(root, other)}: an original whose record is gone is kept here; see which file it is"


def _undo(root: Path, record: Path) -> str:
    """Put the original back, unless somebody else wrote the live file meanwhile: that is kept aside."""
    said = _read(root, record)
    if said is None:
        odd = record.with_suffix(".forged")
        record.rename(odd)
        return f"{told(root, odd)}: is no record of a file of this app; nothing was done for it"
    live, kept = root / said["path"], record.with_suffix(".original")
    live.with_name(f".{record.stem}.candidate").unlink(missing_ok=True)
    what = "was in its place"
    if kept.exists():
        if live.exists() and not live.samefile(kept):
            what = "is back in its place"
            other = _set_aside(live, record, {said["candidate"], digest(kept.read_bytes())})
            if other is not None:
                what += f"; what somebody wrote over the candidate is kept as {told(root, other)}"
        _put_back(kept, live)
    elif live.is_file() and digest(live.read_bytes()) == said["candidate"]:
        what = "is gone, and the body that was being judged stands there"
    record.unlink()
    sync_folder(record.parent)
    return f"{said['path']}: the original {what}"


def _read(root: Path, record: Path) -> dict[str, str] | None:
    """What a record says, when it is one and its path leads to a folder of the app through no link."""
    try:
        said = kept_json(record)
        path, candidate = PurePosixPath(said["path"]), said["candidate"]
        if path.is_absolute() or ".." in path.parts or not isinstance(candidate, str):
            return None
        kept = record.with_suffix(".original")
        if kept.is_symlink() or (kept.exists() and digest(kept.read_bytes()) != said["original"]):
            return None
        with parent_below(root, str(path)):
            return {"path": str(path), "candidate": candidate}
    except (OSError, ValueError, TypeError, KeyError):
        return None


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
