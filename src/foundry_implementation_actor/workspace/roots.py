"""The directories of a tree that a session may change, there before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from foundry_implementation_actor.workspace.left import blocked


def open_roots(tree: Path, paths: Iterable[str]) -> tuple[Path, ...]:
    """These directories of the tree, made where they are not there yet; git knows no empty ones.

    One that has a link or a file in its place, or on the way to it, is left out: nothing can be written below it.

    Args:
        tree: a filled tree that nobody else writes to.
        paths: repository paths of directories.
    """
    opened = [tree / path for path in dict.fromkeys(paths) if not blocked(tree, path)]
    for folder in opened:
        folder.mkdir(parents=True, exist_ok=True)
    return tuple(opened)
