"""Claude Code, driven as a command line without a terminal.

The flags keep a repository from acting through the CLI: `--setting-sources ""` leaves its settings,
hooks, key helper and `env` unread, `--strict-mcp-config` its MCP servers. `CLAUDE.md` still comes
in, because the tree is added as a directory whose `CLAUDE.md` is asked for. What each flag does was
observed on version 2.1.197; the tests drive that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.engines.port import GATE, TIMEOUT_S, SessionOrder, StreamEvent
from foundry_implementation_actor.engines.stream_json import read_line

_READS = "Read,Glob,Grep"
_DENIES = "dontAsk"
_CONNECT_MS = "60000"

TOOLS: Mapping[Door, str] = {
    Door.IMPLEMENT: "Bash,Read,Edit,Write,Glob,Grep",
    Door.ASSESS: _READS,
}

# `acceptEdits` lets the listed tools work; `dontAsk` denies whatever is not listed.
_MODES: Mapping[Door, str] = {Door.IMPLEMENT: "acceptEdits", Door.ASSESS: _DENIES}

# The CLI can read these two from a descriptor. Its own shell then finds them neither in its
# environment nor in the CLI's; CLAUDE_CODE_SUBPROCESS_ENV_SCRUB, which promises that too, demands
# a second sandbox of its own and leaves empty files in the tree.
_BY_DESCRIPTOR: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
    "CLAUDE_CODE_OAUTH_TOKEN": "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
}

SYSTEM_LIMIT = 100 * 1024
"""What the system prompt may have, in bytes: Linux takes no argument above 128 KiB."""

_QUIET: Mapping[str, str] = {
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    # Otherwise `@/any/file` in a caller's words puts that file of this host before the model.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    # Otherwise the CLI runs `git status` at its start, which runs what core.fsmonitor names.
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LANG": "C.UTF-8",
    "MCP_CONNECTION_NONBLOCKING": "0",
}


@dataclass(frozen=True)
class ClaudeCode:
    """The `claude-code` engine; `claude_bin` is the CLI's path, or its name on the session's PATH."""

    claude_bin: str = "claude"

    @property
    def name(self) -> str:
        """The word that a sidecar uses."""
        return "claude-code"

    def secret(self, order: SessionOrder) -> bytes:
        """The model's key or token; a metered key comes first, as an operator asked for that one."""
        return order.credentials.get(_secret_name(order), "").encode()

    def command(self, order: SessionOrder, secret_fd: int | None) -> Command:
        """The CLI's argv, its whole environment, and the prompt on stdin.

        Raises:
            ActorError: UNFIT when `order.system`, which the cards make, is larger than `SYSTEM_LIMIT`.
        """
        _check_system(order)
        return Command(
            argv=(self.claude_bin, *_flags(order)),
            cwd=order.tree,
            env=_environment(order, secret_fd),
            timeout_s=TIMEOUT_S,
            stdin=order.prompt.encode("utf-8", "replace"),
            pass_fds=() if secret_fd is None else (secret_fd,),
        )

    def read(self, line: bytes) -> tuple[StreamEvent, ...]:
        """The events of one line."""
        return read_line(line)


def _check_system(order: SessionOrder) -> None:
    size = len(order.system.encode("utf-8", "replace"))
    if size > SYSTEM_LIMIT:
        said = f"the cards make a system prompt of {size:,} bytes; a session takes {SYSTEM_LIMIT:,}"
        raise ActorError(Code.UNFIT, said, hint=f"shorten what they say about {order.door}")


def _flags(order: SessionOrder) -> list[str]:
    tools = TOOLS[order.door] if order.gate is None else _READS
    allowed = tools if order.gate is None else f"{tools},mcp__{GATE}__*"
    return [
        "--print", "--output-format", "stream-json", "--verbose",
        "--setting-sources", "", "--strict-mcp-config", "--add-dir", ".",
        *(() if order.gate is None else ("--mcp-config", str(order.gate))),
        "--tools", tools, "--allowedTools", allowed,
        "--permission-mode", _MODES[order.door] if order.gate is None else _DENIES,
        *(("--max-budget-usd", f"{order.cost_usd:f}") if order.cost_usd else ()),
        "--max-turns", str(order.turns), "--append-system-prompt", order.system,
    ]  # fmt: skip


def _environment(order: SessionOrder, secret_fd: int | None) -> dict[str, str]:
    passed = {name: value for name, value in order.credentials.items() if name not in _BY_DESCRIPTOR}
    if order.gate is not None:
        passed["MCP_TIMEOUT"] = _CONNECT_MS
    if secret_fd is not None:
        passed[_BY_DESCRIPTOR[_secret_name(order)]] = str(secret_fd)
    return {
        **_QUIET,
        **order.surroundings,
        "HOME": str(order.home),
        "TMPDIR": str(order.temporary),
        "CLAUDE_CODE_TMPDIR": str(order.temporary),
        "PATH": order.path,
        **passed,
    }


def _secret_name(order: SessionOrder) -> str:
    return next((name for name in _BY_DESCRIPTOR if order.credentials.get(name)), "")
