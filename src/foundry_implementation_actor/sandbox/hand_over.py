"""Giving a plain user what it is to work in, where the actor is root and runs other people's code as `nobody`."""

from __future__ import annotations

import contextlib
import os
import stat
from functools import cache
from pathlib import Path

from foundry_implementation_actor.sandbox.layout import Layout, Seen
from foundry_implementation_actor.sandbox.places import plain_user
from foundry_implementation_actor.sandbox.port import View

_CHOWN, _SETGID, _SETUID, _SETPCAP = 0, 6, 7, 8


@cache
def may_switch() -> bool:
    """Whether the actor is root with the capabilities to become a plain user and to give it files."""
    if os.getuid() != 0:
        return False
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            has = int(line.split()[1], 16)
            return all(has >> capability & 1 for capability in (_CHOWN, _SETGID, _SETUID, _SETPCAP))
    return False


def hand_over(view: View, layout: Layout) -> bool:
    """Give the places that a view may change to the plain user, and let it through on the way there.

    Whatever lies in them is given too, links as links, in time proportional to its number of files. Of the folders
    on the way, those in the actor's own hidden places that no group uses are opened for the plain user's
    group to pass through, not to list; no other folder is touched.

    Returns:
        Whether the user is still kept from a place, so that it needs the right to read everything.
    """
    uid, gid = plain_user()
    for folder in view.own:
        _give(folder, uid, gid)
    for folder in (*view.own, *view.shown):
        for above in reversed(folder.parents):
            if any(above.is_relative_to(hidden) for hidden in view.hidden):
                _let_through(above, gid)
    seen = (place.path for place in layout.places if place.seen is not Seen.HIDDEN)
    return any(_is_kept_out(Path(path), uid, gid) for path in seen)


def _give(folder: Path, uid: int, gid: int) -> None:
    for _, _, files, opened in os.fwalk(folder, follow_symlinks=False):
        _chown(".", uid, gid, opened)
        for name in files:
            _chown(name, uid, gid, opened)


def _chown(name: str, uid: int, gid: int, folder: int) -> None:
    """Give one entry away. A second name of a file elsewhere would give that away too: it stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        shared = found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)
        if found.st_uid != uid and not shared:
            os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)


def _let_through(folder: Path, gid: int) -> None:
    found = folder.stat()
    if found.st_uid == os.getuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IXOTH):
        os.chown(folder, -1, gid)
        folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXGRP)


def _is_kept_out(path: Path, uid: int, gid: int) -> bool:
    """Whether a plain user may not enter a folder above a place, or not read the place itself."""
    try:
        if any(not _may(above.stat(), uid, gid, stat.S_IXOTH) for above in path.parents):
            return True
        return not _may(path.stat(), uid, gid, stat.S_IROTH)
    except OSError:
        return False


def _may(found: os.stat_result, uid: int, gid: int, wanted: int) -> bool:
    if found.st_uid == uid:
        return bool(found.st_mode & wanted << 6)
    return bool(found.st_mode & (wanted << 3 if found.st_gid == gid else wanted))
