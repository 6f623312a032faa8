"""No sandbox: for an operator who asks for it by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.sandbox.doors import Doors, host_doors
from foundry_implementation_actor.sandbox.port import Gap, View


class NoSandbox:
    """Runs a command as it is. Its environment may name a proxy; nothing makes the command use it."""

    name = "none"
    gaps = (Gap("everything", "nothing is held: a command may read, change and reach whatever the actor's user may"),)

    @contextlib.contextmanager
    def confine(self, command: Command, view: View) -> Iterator[Command]:  # noqa: ARG002 - a view binds nobody here
        """The same command."""
        yield command

    def doors(self, *, gate: bool = False) -> AbstractContextManager[Doors]:
        """Doors on the host's loopback; see `Sandbox`."""
        return host_doors(gate=gate)
