"""A command to run and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Ended(StrEnum):
    """How a child process came to its end."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    PROCESSES = "processes"
    MEMORY = "memory"
    DISK = "disk"
    FILES = "files"
    TAMPERED = "tampering"
    STOPPED = "stopped"
    NOT_FOUND = "not-found"


@dataclass(frozen=True)
class Confinement:
    """What a program's own process takes on right before the program starts; see `sandbox`.

    Descriptors are -1 for none, and are not handed on to the program: `rules` is a Landlock rule set,
    `filter` a file with a system call filter. With `user`, a uid and a gid, it becomes that user, or stays it,
    and has no capability any more, but with `reads_all` the one to read every file that the rules leave. With
    `wire`, a local socket, it gets a network of its own and sends back over it sockets that listen there on
    `doors`, an address and a port each.
    """

    rules: int = -1
    filter: int = -1
    user: tuple[int, int] | None = None
    reads_all: bool = False
    wire: int = -1
    doors: tuple[tuple[str, int], ...] = ()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Every descriptor that it needs."""
        return tuple(one for one in (self.rules, self.filter, self.wire) if one >= 0)


@dataclass(frozen=True)
class Command:
    """What to run. The environment is whole: nothing is inherited from the actor's own.

    `stdin` is everything the child can read; it sees end of file after it. `output_limit` bounds
    stdout and stderr together, in bytes. `most_processes` and `most_memory` (bytes, of all its
    processes together) bound what it and its descendants may be at once; 0 is no bound. They are
    looked at a few times a second. `pass_fds` are descriptors that the child inherits. A `confinement` is
    taken on by contained programs only.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float
    stdin: bytes = b""
    output_limit: int = 16 * 1024 * 1024
    most_processes: int = 0
    most_memory: int = 0
    pass_fds: tuple[int, ...] = field(default=())
    confinement: Confinement | None = None


@dataclass(frozen=True)
class Completed:
    """What came of a command: its exit code (negative for a signal), output and manner of ending."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    ended: Ended
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.ended is Ended.EXIT and self.code == 0

    @property
    def errors(self) -> str:
        """Its stderr as text, decoding errors replaced, ends trimmed."""
        return self.stderr.decode("utf-8", "replace").strip()

    @property
    def text(self) -> str:
        """Its stdout as text, decoding errors replaced."""
        return self.stdout.decode("utf-8", "replace")
