"""The real `claude` with the gate as its only pen, against a scripted model on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST, python_app, sources
from support.claude import claude_binary
from support.model import Request, ScriptedModel, Step, Turn, say, tool, turn, use

GATE = ("edit", "implement", "make", "read", "status", "test")
TOOLS = ["Glob", "Grep", "Read", *(f"mcp__gate__{name}" for name in GATE)]
CART = {"plugin": "shop", "class": "Cart"}


def session(app: Path, home: Path, model: ScriptedModel) -> list[dict[str, Any]]:
    """One headless session in the app; gives the lines of its stream."""
    words = ["-m", "foundry_implementation_actor.cli", "mcp", "--app", str(app)]
    server = {"command": sys.executable, "args": words, "env": {"PATH": os.environ["PATH"]}}
    config = json.dumps({"mcpServers": {"gate": {"type": "stdio", **server}}})
    argv = [
        str(claude_binary()), "--print", "--output-format", "stream-json", "--verbose", "--setting-sources", "",
        "--strict-mcp-config", "--mcp-config", config, "--tools", "Read,Glob,Grep",
        "--allowedTools", "Read,Glob,Grep,mcp__gate__*", "--max-turns", "20", "--", "Write the cart.",
    ]  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "CLAUDE_CODE_TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "test", "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        "MCP_CONNECTION_NONBLOCKING": "0", "MCP_TIMEOUT": "60000", "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
    }  # fmt: skip
    done = subprocess.run(
        argv, cwd=app, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def make(kind: str, name: str = "") -> Turn:
    arguments = {"kind": kind, "plugin": "shop", "name": name}
    return Turn(({"type": "tool_use", "name": "mcp__gate__make", "input": arguments},))


def results(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks = [block for line in stream if line["type"] == "user" for block in line["message"]["content"]]
    return [block for block in blocks if block["type"] == "tool_result"]


def test_a_session_makes_tests_and_lands_a_class_with_no_other_pen(tmp_path: Path, home: Path) -> None:
    app = python_app(tmp_path / "app", made=False)
    standing: list[bytes] = []

    def after_the_refusal(_: Request) -> Turn:
        standing.append((app / SCAFFOLD).read_bytes())
        return use("mcp__gate__implement", **CART, content=HONEST)

    steps: list[Step] = [
        make("plugin"),
        make("service", "Cart"),
        make("test", "Cart"),
        use("mcp__gate__implement", **{**CART, "class": "TestCart"}, content=TEST),
        turn(tool("Write", file_path=str(app / SCAFFOLD), content=HONEST), tool("Bash", command="touch outside")),
        use("mcp__gate__implement", **CART, content=FAKE),
        after_the_refusal,
        use("mcp__gate__read", **CART),
        say("done"),
    ]
    with ScriptedModel(steps) as model:
        stream = session(app, home, model)
    start = stream[0]
    assert sorted(start["tools"]) == TOOLS
    assert [(server["name"], server["status"]) for server in start["mcp_servers"]] == [("gate", "connected")]
    refused = [bool(result.get("is_error")) for result in results(stream)]
    assert refused == [*[False] * 4, True, True, True, False, False], results(stream)
    told = ["\n".join(request.messages) for request in model.asked]
    assert "refused by own-test" in told[6]
    assert "To be written" in standing[0].decode()
    assert "digest" in told[8]
    assert ((app / SCAFFOLD).read_text(), (app / OWN_TEST).read_text()) == (HONEST, TEST)
    assert set(sources(app)) == {
        "pyproject.toml", SCAFFOLD, OWN_TEST, "src/plugins/__init__.py", "src/plugins/shop/__init__.py"
    }  # fmt: skip
    assert stream[-1]["is_error"] is False
