"""The limits that every command of a judge runs under, and its private folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed, Ended

MEMORY_KIB = 4 * 1024 * 1024
"""Address space of one process. Analysers reserve far more than they use."""

FILE_BLOCKS = 128 * 1024
"""Size of one file, in blocks of 512 bytes: 64 MiB."""

MOST_PROCESSES = 256
"""Processes of one command at once. Pools of workers stay far below."""

_SHELL = f'ulimit -c 0; ulimit -v {MEMORY_KIB}; ulimit -f {FILE_BLOCKS}; exec "$@"'


def limited(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command under its memory and file limits."""
    return ("/bin/sh", "-c", _SHELL, "sh", *argv)


def bounded(command: Command) -> Command:
    """The command, ended when all of its processes together are too many or too large.

    `ulimit` cannot say that: Linux counts a user's processes on the whole host, and never root's,
    and the memory of each by itself.
    """
    return replace(command, most_processes=MOST_PROCESSES, most_memory=MEMORY_KIB * 1024)


def private(env: Mapping[str, str], folder: str) -> dict[str, str]:
    """The environment with HOME and temporary files in a folder of the command's own."""
    return {**env, "HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}


def missing_program(command: Command) -> Completed | None:
    """What came of a command whose program is not there; None when it is."""
    path = command.env.get("PATH", os.defpath)
    if shutil.which(command.argv[0], path=path) or (Path(command.cwd) / command.argv[0]).is_file():
        return None
    return Completed(command.argv, 127, b"", f"{command.argv[0]}: not found".encode(), Ended.NOT_FOUND, 0.0)
