"""Tries to change whose a file is, and who may do what with it."""

from __future__ import annotations

import os
from pathlib import Path

from foundry_implementation_actor.sandbox.inside.trying import Scene, attempt


@attempt(by_mark=True)
def lend_rights_at_once(scene: Scene) -> None:
    """Make such a program in one go."""
    os.close(os.open(f"{scene.own}/lend-rights-at-once", os.O_WRONLY | os.O_CREAT, 0o4755))


@attempt("chmod")
def change_mode(scene: Scene) -> None:
    """Change the mode of a file."""
    Path(scene.victim("change-mode")).chmod(0o600)


@attempt("chmod")
def change_mode_by_descriptor(scene: Scene) -> None:
    """Change the mode of a file by a descriptor that reads."""
    file = os.open(scene.victim("change-mode-by-descriptor"), os.O_RDONLY)
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)


@attempt("chmod")
def change_owner(scene: Scene) -> None:
    """Give a file to a group."""
    groups = [group for group in os.getgroups() if group != os.getgid()]
    os.chown(scene.victim("change-owner"), -1, groups[0] if groups else os.getgid())


@attempt("chmod")
def change_times(scene: Scene) -> None:
    """Change the times of a file."""
    os.utime(scene.victim("change-times"), (1, 1))


@attempt("chmod")
def change_attribute(scene: Scene) -> None:
    """Put an attribute on a file."""
    os.setxattr(scene.victim("change-attribute"), "user.changed", b"1")
