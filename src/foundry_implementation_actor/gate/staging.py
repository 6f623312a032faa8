"""Bodies that arrive in sections: kept outside every source tree, unjudged, until `finish` asks for the whole.

A section is a file of its own below `.foundry/staging/<plugin>.<class>/`, so a section that was
taken in is there whole or not at all, and survives a restart.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Target, digest, is_identifier
from foundry_implementation_actor.gate.state import (
    give_place_to_owner,
    hold,
    kept_folder,
    read_kept,
    state_folder,
    told,
    unwritable,
    write_durably,
)
from foundry_implementation_actor.system.files import remove_tree

MOST_BYTES = 256 * 1024
"""Bytes of one body. The gate's own process parses it, which takes hundreds of times its size in memory."""

MOST_SECTIONS = 1_024
"""Sections of one body."""

_FOLDER = "staging"
_LOCK = "lock"
_AFRESH = "abandon it and start again"


@dataclass(frozen=True)
class Staged:
    """A body as far as it has arrived, judged by nobody. `opened` is in seconds since 1970.

    `damage` says why what arrived cannot be used; nothing else is known of it then.
    """

    target: Target
    sections: int
    size: int
    digest: str
    opened: float
    damage: str = ""


@dataclass(frozen=True)
class Declared:
    """What a caller says of a section: its number (from 1) or its offset in bytes; None when unsaid."""

    section: int | None = None
    offset: int | None = None


class Staging:
    """The bodies of one app that are on their way in."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def start(self, target: Target, content: bytes) -> Staged:
        """Begin a body with its first section; one that was open for this target is dropped.

        Raises:
            ActorError: UNFIT when it cannot be written.
        """
        folder = state_folder(self._root, _FOLDER)
        with hold(folder, _LOCK):
            _drop(folder, target)
            made = folder / f".{secrets.token_hex(8)}.new"
            try:
                made.mkdir()
                give_place_to_owner(made)
                write_durably(made / _name(1), content)
                made.rename(folder / str(target))
            except OSError as error:
                remove_tree(made)
                raise unwritable(error, folder) from error
        return _staged(folder / str(target), target)

    def append(self, target: Target, content: bytes, declared: Declared) -> Staged | str:
        """Take in the next section; one that is here already, by what was declared, is taken once.

        Returns:
            The body so far, or why the section was not taken.

        Raises:
            ActorError: UNFIT when it cannot be written.
        """
        folder = state_folder(self._root, _FOLDER)
        with hold(folder, _LOCK):
            place = folder / str(target)
            sections = _sections(place)
            if not sections:
                return f"nothing was started for {target}; send its first section with mode=start"
            misfit = _misfit(sections, content, declared)
            if misfit is not None:
                return misfit or _staged(place, target)
            if len(sections) == MOST_SECTIONS:
                return f"{target} has {MOST_SECTIONS} sections, which is the most"
            refused = too_large(sum(map(len, sections)) + len(content))
            if refused:
                return refused
            try:
                write_durably(place / _name(len(sections) + 1), content)
            except OSError as error:
                raise unwritable(error, place) from error
            return _staged(place, target)

    def assembled(self, target: Target) -> bytes | None:
        """The whole body as far as it has arrived, byte for byte; None when nothing was started."""
        folder = kept_folder(self._root, _FOLDER)
        if folder is None:
            return None
        with hold(folder, _LOCK):
            sections = _sections(folder / str(target))
        return b"".join(sections) if sections else None

    def status(self, target: Target) -> Staged | None:
        """How far one body has arrived; what happened to others does not matter.

        Raises:
            ActorError: BAD_REQUEST when this one is damaged.
        """
        folder = kept_folder(self._root, _FOLDER)
        if folder is None:
            return None
        with hold(folder, _LOCK):
            staged = _staged(folder / str(target), target)
        return staged if staged.sections else None

    def all(self) -> list[Staged]:
        """Every body that is on its way in, by name; a damaged one with what is wrong."""
        folder = kept_folder(self._root, _FOLDER)
        if folder is None:
            return []
        with hold(folder, _LOCK):
            return [_staged_or_damaged(place, target) for place, target in _open(folder)]

    def abandon(self, target: Target) -> bool:
        """Drop what has arrived of a body; says whether there was anything."""
        folder = kept_folder(self._root, _FOLDER)
        if folder is None:
            return False
        with hold(folder, _LOCK):
            return _drop(folder, target)

    def taken(self, target: Target, content: bytes) -> None:
        """Drop a body that has landed, unless further sections came in meanwhile."""
        folder = kept_folder(self._root, _FOLDER)
        if folder is not None:
            with hold(folder, _LOCK):
                if b"".join(_sections(folder / str(target))) == content:
                    _drop(folder, target)

    def recover(self) -> list[str]:
        """Remove what a killed process left unfinished; says what, a line for each."""
        folder = kept_folder(self._root, _FOLDER)
        if folder is None:
            return []
        with hold(folder, _LOCK):
            asides = sorted(path for path in folder.rglob(".*") if path.suffix in {".new", ".dropped"})
            for path in asides:
                remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return [f"{told(self._root, path)}: removed, it was never finished" for path in asides]


def too_large(size: int) -> str:
    """Why a body of that many bytes is not taken; empty when it is."""
    if size <= MOST_BYTES:
        return ""
    return f"the body would have {size:,} bytes; {MOST_BYTES:,} are the most, so put part of it into a class of its own"


def _misfit(sections: list[bytes], content: bytes, declared: Declared) -> str | None:
    """Why a section is not the next one; empty when it is here already; None when it is the next."""
    number = declared.section
    if number is not None and number <= len(sections):
        return "" if sections[number - 1] == content else f"section {number} is here already, with other content"
    if number is not None and number > len(sections) + 1:
        return f"section {number} came, but section {len(sections) + 1} is missing"
    whole = b"".join(sections)
    if declared.offset is None or declared.offset == len(whole):
        return None
    if content and whole[declared.offset : declared.offset + len(content)] == content:
        return ""
    return f"offset {declared.offset} does not follow what is here: the next section begins at {len(whole)}"


def _name(number: int) -> str:
    return f"{number:06}.part"


def _sections(place: Path) -> list[bytes]:
    """The sections of a body in their order; none when it was not started.

    Raises:
        ActorError: BAD_REQUEST when one is missing in between or cannot be read.
    """
    if place.is_symlink() or not place.is_dir():
        return []
    paths = sorted(place.glob("*.part"))
    if [path.name for path in paths] != [_name(at) for at in range(1, len(paths) + 1)]:
        raise ActorError(Code.BAD_REQUEST, "what was staged has lost a section", hint=_AFRESH, where=str(place))
    try:
        return [read_kept(path, MOST_BYTES + 1) for path in paths]
    except OSError as error:
        message = f"what was staged cannot be read: {error.strerror}"
        raise ActorError(Code.BAD_REQUEST, message, hint=_AFRESH, where=str(place)) from error


def _open(folder: Path) -> Iterator[tuple[Path, Target]]:
    for place in sorted(folder.iterdir()):
        plugin, _, class_ = place.name.partition(".")
        if is_identifier(plugin) and is_identifier(class_) and place.is_dir() and not place.is_symlink():
            yield place, Target(plugin, class_)


def _staged(place: Path, target: Target) -> Staged:
    sections = _sections(place)
    opened = (place / _name(1)).stat().st_mtime if sections else 0.0
    whole = b"".join(sections)
    return Staged(target, len(sections), len(whole), digest(whole), opened)


def _staged_or_damaged(place: Path, target: Target) -> Staged:
    try:
        staged = _staged(place, target)
    except ActorError as error:
        return Staged(target, 0, 0, "", 0.0, damage=error.message)
    return staged if staged.sections else replace(staged, damage="no section is left of what was staged")


def _drop(folder: Path, target: Target) -> bool:
    """Take a body out of sight at once, then delete it, so that no half of it is ever read."""
    dropped = folder / f".{secrets.token_hex(8)}.dropped"
    try:
        (folder / str(target)).rename(dropped)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unwritable(error, folder) from error
    remove_tree(dropped)
    return True
