"""A commit as files: what images are built from, never the session's own tree."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.system.git import Git

_RUNNABLE = 0o755
_PLAIN = 0o644


def export(git: Git, commit: str, folder: Path) -> Path:
    """Write a commit into a fresh `folder` and join it to its history, so that git answers there.

    Args:
        git: the trusted git directory; its HEAD names the commit.
        commit: what to write.
        folder: must not exist.
    """
    write_files(git, commit, folder, index="index.export")
    _level(folder)
    (folder / ".git").write_text(f"gitdir: {git.git_dir}\n")
    return folder


def _level(folder: Path) -> None:
    """Give every file and folder the mode that git keeps of it, whatever this process's umask is: images hold it."""
    for place, _, files in os.walk(folder):
        Path(place).chmod(_RUNNABLE)
        for path in (Path(place, name) for name in files):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                path.chmod(_RUNNABLE if mode & stat.S_IXUSR else _PLAIN)


def write_files(git: Git, tree: str, folder: Path, *, index: str) -> Path:
    """Write a commit's or tree's files, and nothing else, into a fresh `folder`.

    Args:
        git: the trusted git directory.
        tree: what to write.
        folder: must not exist.
        index: the name of an index file that no other export uses; git skips what an index says is there.
    """
    folder.mkdir()
    apart = {"GIT_INDEX_FILE": str(git.git_dir / index)}
    replace(git, work_tree=folder).output("read-tree", "--reset", "-u", tree, extra=apart)
    return folder
