"""A session that follows a script instead of a model: for the demo and for tests.

It starts a real process (`player.py`) that really writes into the tree and speaks the same stream
as the claude CLI.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.engines.claude_code import TOOLS
from foundry_implementation_actor.engines.port import TIMEOUT_S, SessionOrder, StreamEvent
from foundry_implementation_actor.engines.script import Script
from foundry_implementation_actor.engines.stream_json import read_line

# As a text: the folder of this package may lie in a home or in /tmp, where a session sees nothing.
_PLAYER = Path(__file__).with_name("player.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Scripted:
    """The scripted engine, and the script it follows."""

    script: Script

    @property
    def name(self) -> str:
        """The word that settings use."""
        return "scripted"

    def secret(self, order: SessionOrder) -> bytes:  # noqa: ARG002 - the port's signature; a script needs no key
        """Nothing: there is no model to log in to."""
        return b""

    def command(self, order: SessionOrder, secret_fd: int | None) -> Command:  # noqa: ARG002 - as above
        """The player's argv and environment; the chosen session's steps on stdin.

        Raises:
            ActorError: UNFIT when no session of the script answers the order.
        """
        gate = None if order.gate is None else str(order.gate)
        given = {"tools": TOOLS[order.door].split(","), "steps": self._steps(order), "gate": gate}
        return Command(
            argv=(sys.executable, "-I", "-S", "-c", _PLAYER),
            cwd=order.tree,
            env={
                **order.surroundings,
                "HOME": str(order.home), "TMPDIR": str(order.temporary), "PATH": order.path,
                "LANG": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0",
            },
            timeout_s=TIMEOUT_S,
            stdin=json.dumps(given).encode(),
        )  # fmt: skip

    def read(self, line: bytes) -> tuple[StreamEvent, ...]:
        """The events of one line."""
        return read_line(line)

    def _steps(self, order: SessionOrder) -> list[dict[str, Any]]:
        session = self.script.session_for(order)
        if session is not None:
            return list(session.steps)
        asked = f"{order.door} of task {order.task_id!r}" + (" with remediation" if order.remediation else "")
        asked += f", attempt {order.attempt}" if order.attempt > 1 else ""
        hint = "add one to the script, or name another with SESSION_SCRIPT, and start the actor again"
        raise ActorError(Code.UNFIT, f"the script has no session for {asked}", hint=hint, where=self.script.where)
