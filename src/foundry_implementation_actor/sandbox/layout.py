"""A view as a list of places, outermost first: what is hidden, shown and writable, and what is closed besides."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox import places
from foundry_implementation_actor.sandbox.port import Network, View


class Seen(IntEnum):
    """How a command sees a place. Of the same place named twice, the higher one counts."""

    HIDDEN = 0
    SHOWN = 1
    WRITABLE = 2


class Place(NamedTuple):
    """One place, and how it is seen."""

    path: str
    seen: Seen


@dataclass(frozen=True)
class Layout:
    """What a view comes to on this host, for one command.

    `places` are folders and files, each before what lies below it. `scratch` are those hidden ones that
    the command may find empty and fill, as programs expect of `/tmp`. `closed` are files and
    folders that are never seen, wherever they lie.
    """

    places: tuple[Place, ...]
    scratch: tuple[str, ...]
    closed: tuple[str, ...]

    def hides(self, path: str) -> bool:
        """Whether a path is not seen: the innermost place around it says so."""
        return self._innermost(path) is Seen.HIDDEN

    def opens(self, path: str) -> bool:
        """Whether a path lies in a place that the command may change."""
        return self._innermost(path) is Seen.WRITABLE

    def _innermost(self, path: str) -> Seen:
        around = [place.seen for place in self.places if _is_in(path, place.path)]
        return around[-1] if around else Seen.SHOWN


def lay_out(command: Command, view: View) -> Layout:
    """What this view comes to.

    Raises:
        ActorError: UNFIT when a place that the command may change is no folder, or is reached through a link.
    """
    for folder in view.own:
        _judge(folder)
    homes = places.homes()
    named = (*places.TEMPORARY, places.SOCKETS, *homes, *map(str, view.hidden))
    hidden = [path for path in map(os.path.realpath, named) if places.is_there(path)]
    asked = set(map(str, view.shown)) | set(map(os.path.realpath, view.shown))
    wanted = places.of_command(command, homes, hidden) | {str(command.cwd)}
    if view.network is Network.OPEN:
        wanted |= places.resolver()
    shown = asked | {path for path in wanted if _may_be_shown(path, hidden, homes)}
    seen = dict.fromkeys(hidden, Seen.HIDDEN) | {path: Seen.SHOWN for path in shown if places.is_there(path)}
    seen |= dict.fromkeys(map(str, view.own), Seen.WRITABLE)
    ordered = _outermost_first(seen)
    closed = [path for path in places.secret_places() if not _lies_around(path, ordered)]
    return Layout(ordered, places.TEMPORARY, tuple(closed))


def _judge(folder: Path) -> None:
    if os.path.realpath(folder) != str(folder) or not folder.is_dir():
        raise ActorError(
            Code.UNFIT, "a place that a sandboxed command may change has to be a folder, named through no link",
            where=str(folder),
        )  # fmt: skip


def _may_be_shown(path: str, hidden: Iterable[str], homes: Iterable[str]) -> bool:
    """Whether a place lies below a hidden one, and showing it shows no whole home."""
    below = any(path != folder and _is_in(path, folder) for folder in hidden)
    return below and not any(_is_in(home, path) for home in homes)


def _outermost_first(seen: dict[str, Seen]) -> tuple[Place, ...]:
    """The places in order, without those that say nothing new: what lies in a writable place is writable."""
    kept: list[Place] = []
    for path in sorted(seen, key=lambda one: (one.count("/"), one)):
        around = [place for place in kept if _is_in(path, place.path)]
        outer = around[-1] if around else Place("/", Seen.SHOWN)
        # In a place to fill, one that is hidden can still not be filled.
        nothing_new = seen[path] is outer.seen and outer.path not in places.TEMPORARY
        if Seen.WRITABLE not in {place.seen for place in around} and not nothing_new:
            kept.append(Place(path, seen[path]))
    return tuple(kept)


def _lies_around(path: str, ordered: Sequence[Place]) -> bool:
    """Whether a place that is closed to others holds one that the view names; or lies in a hidden one anyway."""
    return any(_is_in(place.path, path) or _is_in(path, place.path) for place in ordered)


def _is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
