"""Putting judged bodies into their files: whole, all together or not at all, and only over what was judged.

A landing first writes down what it is about to do (`.foundry/landing/<id>.json`), then writes each
body aside under a dot-name in the folder of its file, then renames. A process that is killed in
between leaves that record; `recover` puts the old bodies back, which is right because nobody was
told yet that anything landed. `.foundry/landing/count` grows with each landing, so that a caller
can see whether the app moved on while it judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Candidate, digest
from foundry_implementation_actor.gate.spot import Spot, open_regular, open_spot
from foundry_implementation_actor.gate.state import (
    hold,
    kept_folder,
    kept_json,
    read_kept,
    state_folder,
    unwritable,
    write_durably,
)
from foundry_implementation_actor.system.files import is_below, parent_below, remove_tree

Step = Callable[[str], None]
"""Called after each step with its name; a test ends the process in it."""

_FOLDER = "landing"
_LOCK = "lock"
_COUNT = "count"


@dataclass(frozen=True)
class NotLanded:
    """Why nothing landed: the live file is not the one that was judged against."""

    path: str
    message: str


@dataclass(frozen=True)
class _Entry:
    """One file of a landing: the names of its new and its old body beside it, and their digests."""

    path: str
    aside: str
    kept: str
    before: str
    after: str


def count(root: Path) -> int:
    """How many landings this app has had; a landing that was cut may count."""
    folder = kept_folder(root, _FOLDER)
    try:
        return int(read_kept(folder / _COUNT)) if folder else 0
    except (OSError, ValueError):
        return 0


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold an app's landing lock; what a killed process left half done is undone first."""
    folder = state_folder(root, _FOLDER)
    with hold(folder, _LOCK):
        _undo_all(root, folder)
        yield


def recover(root: Path) -> list[str]:
    """Undo every landing that was cut; says what was done, a line for each file."""
    folder = kept_folder(root, _FOLDER)
    if folder is None or not _left(folder):
        return []
    with hold(folder, _LOCK):
        return _undo_all(root, folder)


def land(root: Path, bodies: Sequence[Candidate], step: Step = lambda _: None) -> NotLanded | None:
    """Put bodies into their files; the caller holds `alone`.

    Args:
        root: the real path of the app.
        bodies: each replaces its `original`, which must still stand in the file byte for byte.
        step: see `Step`.

    Returns:
        None when all of them landed; why not, when a file is no longer what was judged.

    Raises:
        ActorError: UNFIT when a file cannot be written; all files are as they were.
    """
    folder = state_folder(root, _FOLDER)
    with ExitStack() as open_files:
        spots = []
        for body in bodies:
            spot = open_spot(root, body, open_files)
            if isinstance(spot, str):
                return NotLanded(body.place.path, spot)
            spots.append(spot)
        changing = [spot for spot in spots if spot.body.content != spot.body.original]
        if changing:
            _replace(root, folder, changing, step)
    return None


def _replace(root: Path, folder: Path, spots: Sequence[Spot], step: Step) -> None:
    number = secrets.token_hex(8)
    record = folder / f"{number}.json"
    entries = [_entry(spot.body, f".{number}.{at}") for at, spot in enumerate(spots)]
    try:
        write_durably(folder / _COUNT, b"%d" % (count(root) + 1))
        step("counted")
        write_durably(record, _written(entries))
        step("recorded")
        _set_aside(spots, entries, step)
        for spot, entry in zip(spots, entries, strict=True):
            spot.put(entry.aside)
            step("renamed")
        for spot in spots:
            spot.sync()
        step("synced")
        if len(spots) > 1:
            write_durably(record, _written(entries, landed=True))
            step("landed")
    except OSError as error:
        _undo(root, record)
        raise unwritable(error, root / spots[0].body.place.path) from error
    except BaseException:
        _undo(root, record)
        raise
    _tidy(spots, entries, record, step)


def _set_aside(spots: Sequence[Spot], entries: Sequence[_Entry], step: Step) -> None:
    for spot, entry in zip(spots, entries, strict=True):
        spot.write_aside(entry.aside)
        step("written")
        spot.keep(entry.kept)
        step("kept")
    for spot in spots:
        spot.sync()
    step("aside")


def _tidy(spots: Sequence[Spot], entries: Sequence[_Entry], record: Path, step: Step) -> None:
    """Drop the old bodies, then the record. What cannot be dropped now, `recover` drops."""
    with contextlib.suppress(OSError):
        for spot, entry in zip(spots, entries, strict=True):
            spot.drop(entry.kept)
            step("dropped")
        record.unlink(missing_ok=True)
    step("done")


def _entry(body: Candidate, name: str) -> _Entry:
    return _Entry(body.place.path, f"{name}.landing", f"{name}.kept", digest(body.original), digest(body.content))


def _written(entries: Sequence[_Entry], *, landed: bool = False) -> bytes:
    return json.dumps({"landed": landed, "files": [asdict(entry) for entry in entries]}).encode()


def _left(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in {".json", ".new"})


def _undo_all(root: Path, folder: Path) -> list[str]:
    said = []
    for path in _left(folder):
        if path.suffix == ".new":
            remove_tree(path)
        else:
            said += _undo(root, path)
    return said


def _undo(root: Path, record: Path) -> list[str]:
    """Bring the files of one record back to their old bodies (or, when it landed, tidy up after it)."""
    try:
        found = kept_json(record)
        entries = [_read(record.stem, at, entry) for at, entry in enumerate(found["files"])]
        landed = bool(found["landed"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        hint = "look at the files it names and delete it"
        raise ActorError(Code.UNFIT, "is no record of a landing", hint=hint, where=str(record)) from error
    try:
        said = [line for entry in entries for line in _undo_file(root, entry, landed=landed)]
        record.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(error, record) from error
    return said


def _read(number: str, at: int, said: Mapping[str, str]) -> _Entry:
    """One file of a record. A record may have come with the app: what no landing writes is none, and is not obeyed."""
    entry, name = _Entry(**said), f".{number}.{at}"
    if not is_below(entry.path) or (entry.aside, entry.kept) != (f"{name}.landing", f"{name}.kept"):
        raise ValueError("no landing writes that")
    return entry


def _undo_file(root: Path, entry: _Entry, *, landed: bool) -> Iterator[str]:
    """Undo one file of a landing; a file that somebody else changed meanwhile is left as it is."""
    try:
        with parent_below(root, entry.path) as (folder, name):
            if not landed and _lies(folder, entry.kept):
                yield from _put_back(folder, name, entry)
            for aside in (entry.aside, entry.kept):
                if _lies(folder, aside):
                    os.unlink(aside, dir_fd=folder)
                    yield f"{entry.path}: removed what its landing left beside it"
    except FileNotFoundError:
        yield f"{entry.path}: its folder is gone"


def _put_back(folder: int, name: str, entry: _Entry) -> Iterator[str]:
    now = _digest_of(folder, name)
    if now == entry.after:
        os.rename(entry.kept, name, src_dir_fd=folder, dst_dir_fd=folder)
        yield f"{entry.path}: the old body is back, because its landing was cut"
    elif now != entry.before:
        yield f"{entry.path}: left as it is, somebody else changed it after its landing was cut"


def _lies(folder: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _digest_of(folder: int, name: str) -> str:
    """The digest of a regular file; empty when there is none."""
    try:
        with open_regular(folder, name) as file:
            return "" if file is None else digest(file.read())
    except OSError:
        return ""
