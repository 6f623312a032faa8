"""What the actor asks of a sandbox: a command in, the command that runs it under a view out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.sandbox.doors import Doors


class Network(StrEnum):
    """What a command reaches besides its own files."""

    OPEN = "open"
    CLOSED = "closed"
    PROXIED = "proxied"


@dataclass(frozen=True)
class Gap:
    """Something that a sandbox cannot hold on this host: a short fixed name, and one sentence that says what."""

    name: str
    what: str


@dataclass(frozen=True)
class View:
    """What one command may see and do. Every path is absolute and leads through no link.

    `writable` are existing directories that it may change; `home` and `temporary` are directories of its
    own, which it may change too. `hidden` are places that it is not to see, besides users' homes,
    `/tmp`, `/var/tmp` and `/run`; `shown` are places that it sees read-only although they lie below a
    hidden one. Where places lie within each other, the inner one counts. Whatever a command needs of
    the folders on its own PATH is shown without being named. `doors` are the ways out under PROXIED; they come
    from the same sandbox's `doors`, and serve one command.
    """

    writable: tuple[Path, ...]
    home: Path
    temporary: Path
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    network: Network = Network.CLOSED
    doors: Doors | None = None

    @property
    def own(self) -> tuple[Path, ...]:
        """Every place that the command may change."""
        return (*self.writable, self.home, self.temporary)


class Sandbox(Protocol):
    """One way to hold a command to its view."""

    @property
    def name(self) -> str:
        """`bubblewrap`, `landlock` or `none`: the word of the setting."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What it cannot hold on this host, for the user that the actor is."""

    def confine(self, command: Command, view: View) -> AbstractContextManager[Command]:
        """The command that runs another under this view, to be started while the context is open.

        It is for `process.Child` and `process.run_contained`, whose supervisor takes part. What the
        context holds open may be closed once the program has started. Places that the program is to change may
        be given to another user on the way in.

        Raises:
            ActorError: UNFIT when a place of the view is not there, or leads through a link.
        """

    def doors(self, *, gate: bool = False) -> AbstractContextManager[Doors]:
        """The ways out for one command under PROXIED: to the actor's proxy and, when asked, to its gate.

        Raises:
            ActorError: UNFIT when no socket can be had.
        """
