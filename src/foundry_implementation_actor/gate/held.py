"""Holding what is judged at its live path: where there are no namespaces, by the kernel's Landlock rules.

What it changes is gone with its own folder: the app, and so the body, its test and the gate's records, can
only be read. Placing the body is then all that a private view would have spared.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.gate.bubblewrap import needed
from foundry_implementation_actor.sandbox.choose import why_not
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.port import Network, View


def holding_refusal() -> str:
    """Why Landlock holds nothing here; empty when it does. Tried once in a process, for real."""
    return why_not(Landlock.name)


def held(app: App, command: Command, folder: Path) -> AbstractContextManager[Command]:
    """The command that runs another with the app read-only; to be started while the context is open.

    Args:
        app: whose root is seen, and whose network says whether there is any.
        command: what to run.
        folder: all that it may change, its HOME and its TMP; named through no link. It is given away where the command
            runs as another user.

    Raises:
        ActorError: UNFIT when the folder is not there.
    """
    network = Network.OPEN if app.network else Network.CLOSED
    shown = (app.root, *map(Path, needed(app, command)))
    view = View((), folder, folder, hidden=app.hidden, shown=shown, network=network)
    # The files of an app may be its owner's alone, and the body is no more to be kept from them than in a private view.
    return Landlock(reads_all=True).confine(command, view)
