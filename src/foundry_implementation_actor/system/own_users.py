"""The users whom a plain user commands (`/etc/subuid`), and what is left of theirs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.system.files import remove_tree
from foundry_implementation_actor.system.process import run

AS_THEIR_ROOT = ("unshare", "--map-root-user", "--map-auto", "--")
"""What a command begins with that a plain user runs as root of all of them."""

_REMOVED_WITHIN_S = 60.0


def remove_theirs_too(folder: Path) -> None:
    """Remove a folder, and what in it belongs to users whom this user commands: a builder of images has some.

    Raises:
        OSError: something of it cannot be removed.
    """
    try:
        remove_tree(folder)
    except PermissionError:
        if os.geteuid() == 0:
            raise
        argv = (*AS_THEIR_ROOT, "rm", "-rf", "--", str(folder))
        with contextlib.suppress(ActorError):
            run(Command(argv, Path("/"), {"PATH": os.defpath}, _REMOVED_WITHIN_S))
        remove_tree(folder)
