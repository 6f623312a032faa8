"""What the actor asks of a coding agent, and the events that it reads back from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.price import Usage
from foundry_implementation_actor.domain.run import Door

TIMEOUT_S = 24 * 3600.0
"""The time limit of a session's command. The session's own budget, its output too, is held by `session.drive`."""


GATE = "gate"
"""What a session calls the gate that is its only pen."""

GATE_TOOLS = ("make", "implement", "edit", "read", "test", "status")
"""The tools of the gate, in the order of work."""


@dataclass(frozen=True)
class SessionOrder:
    """Everything that one session is started with.

    `system` is added to the engine's own system prompt and may travel in the argv, so it stays short;
    `prompt` travels on stdin and may be long. `tree` is where the session works, `home` and
    `temporary` are directories of its own. `turns` and `cost_usd` (US dollars, 0 for none)
    are the budget that the engine is told.
    `credentials` are the model's variables and nothing else. `path` is the session's PATH.
    `surroundings` are variables that tell it of its sandbox: its proxy and its caches. `gate` is the file that
    tells how its only pen is reached (`{"mcpServers": {"gate": …}}`); None when it writes freely. `attempt` is 1
    for the first session of a run and counts on with each that is given the output of a red `verify`.
    """

    door: Door
    task_id: str
    system: str
    prompt: str
    tree: Path
    home: Path
    temporary: Path
    turns: int
    path: str
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    surroundings: Mapping[str, str] = field(default_factory=dict)
    remediation: bool = False
    cost_usd: float = 0.0
    gate: Path | None = None
    attempt: int = 1


@dataclass(frozen=True)
class Init:
    """The session has started: what it says about itself."""

    session_id: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    permission_mode: str = ""


@dataclass(frozen=True)
class Said:
    """A text or a thought. `turn` names the model's turn it belongs to, empty when to none."""

    turn: str
    kind: Literal["text", "thinking"]
    text: str


@dataclass(frozen=True)
class ToolCall:
    """The session uses a tool, with this JSON as its input. `turn` as in `Said`."""

    turn: str
    name: str
    given: str


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered, as text."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Spent:
    """The tokens that a message of the model `model` has taken so far, also a message of a sub-agent.

    It is said again with every piece of the message. `written` is the length of this piece, in bytes
    of UTF-8: the tokens of the output may be stated before they are there.
    """

    message: str
    model: str
    usage: Usage
    written: int = 0


Fault = Literal["", "turns", "money", "provider", "engine"]


@dataclass(frozen=True)
class Result:
    """The session's closing word.

    `fault` is empty when it came to its own end; `turns` or `money` when the engine stopped at its
    own limit, `provider` when the model's service refused or failed, `engine` for anything else.
    """

    fault: Fault
    text: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Other:
    """Anything else that was said on the stream: its kind, and a short account of it."""

    kind: str
    text: str = ""


StreamEvent = Init | Said | ToolCall | ToolResult | Spent | Result | Other


class Engine(Protocol):
    """One coding agent. Pure: it builds a command and reads a line, and touches nothing."""

    @property
    def name(self) -> str:
        """The word that a sidecar's `engine` and the cards use."""

    def secret(self, order: SessionOrder) -> bytes:
        """What is handed over through a descriptor instead of the environment; may be empty."""

    def command(self, order: SessionOrder, secret_fd: int | None) -> Command:
        """How to start the session; `secret_fd` is where it can read `secret`, once.

        Raises:
            ActorError: UNFIT when this engine cannot be given the order.
        """

    def read(self, line: bytes) -> tuple[StreamEvent, ...]:
        """What one line of stdout, without its end, says; empty when it says nothing. Never raises."""
