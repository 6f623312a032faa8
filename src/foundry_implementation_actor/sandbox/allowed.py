"""What a command may read where nothing can be taken away again: everything beside the way to what is hidden."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

from foundry_implementation_actor.sandbox.layout import Layout, Seen

# Devices are allowed one by one.
_LEFT_OUT = ("/dev",)


def readable(layout: Layout) -> Iterator[tuple[str, bool]]:
    """The files and folders to grant, each whole: (path, whether it is a folder).

    Only along the way to a hidden place is each entry named by itself, so such a folder cannot be listed.
    """
    how = dict.fromkeys((*layout.closed, *_LEFT_OUT), Seen.HIDDEN) | {one.path: one.seen for one in layout.places}
    split = _above(path for path, seen in how.items() if seen is Seen.HIDDEN)
    yield from _granted("/", Seen.SHOWN, how, split)


def _above(paths: Iterable[str]) -> frozenset[str]:
    """Every folder that lies above one of these."""
    above = set()
    for path in paths:
        while path != "/":
            path = os.path.dirname(path)  # noqa: PTH120, PLW2901 - texts, hundreds of them
            above.add(path)
    return frozenset(above)


def _granted(path: str, seen: Seen, how: dict[str, Seen], split: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """What to grant of a path that is seen like the folder around it, unless it is a place itself."""
    seen = how.get(path, seen)
    if seen is Seen.WRITABLE:
        return
    if seen is Seen.HIDDEN:
        inner = [one for one in how if one != path and one.startswith(f"{path}/")]
        for place in inner:
            if not any(place.startswith(f"{other}/") for other in inner):
                yield from _granted(place, Seen.HIDDEN, how, split)
    elif path in split:
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from _granted(entry.path, seen, how, split)
    else:
        yield from _whole(path)


def _whole(path: str) -> Iterator[tuple[str, bool]]:
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            yield path, stat.S_ISDIR(mode)
