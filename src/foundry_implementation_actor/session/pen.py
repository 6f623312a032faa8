"""A session's only pen: the gate that the actor serves it, and how the session is told of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.engines.port import GATE
from foundry_implementation_actor.sandbox.doors import Door
from foundry_implementation_actor.system.journal import Journal

_PATH = "/mcp"


class Pen(Protocol):
    """A gate that the sessions of one run write through. A context manager, entered anew for each of them.

    It is left after the session has ended.
    """

    @property
    def token(self) -> str:
        """What the session shows to be let in; good for this one run."""

    def serve(self, listener: socket.socket) -> None:
        """Answer on a listening socket until the pen is left; it is the pen's to close."""

    def record(self) -> GateRecord:
        """What was written in all of them; asked after it was left."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


MakePen = Callable[[Path, Path, Journal], Pen]
"""Makes the gate of a tree, not yet entered; the folder beside the tree is for its state.

It raises `ActorError`: BAD_REQUEST when the tree holds no app that a gate could serve."""


def write_config(folder: Path, pen: Pen, door: Door) -> Path:
    """Write the file that tells a coding agent of its gate, readable by its owner alone; gives its place.

    The token is in there, and so neither in an argv nor in an environment.
    """
    server = {
        "type": "http",
        "url": f"http://{door.address}:{door.port}{_PATH}",
        "headers": {"Authorization": f"Bearer {pen.token}"},
    }
    place = folder / "gate.json"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump({"mcpServers": {GATE: server}}, file)
    return place
