"""A commit as files: what images are built from, never the session's own tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.system.git import Git


def export(git: Git, commit: str, folder: Path) -> Path:
    """Write a commit into a fresh `folder` and join it to its history, so that git answers there.

    Args:
        git: the trusted git directory; its HEAD names the commit.
        commit: what to write.
        folder: must not exist.
    """
    write_files(git, commit, folder, index="index.export")
    (folder / ".git").write_text(f"gitdir: {git.git_dir}\n")
    return folder


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
