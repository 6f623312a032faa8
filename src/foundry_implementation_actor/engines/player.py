"""Plays the steps of a scripted session; `scripted.Scripted` starts the text of this file.

    python -I -S -c "$(cat player.py)" < '{"tools": […], "steps": […]}'

It works in the directory it is started in and speaks the `stream-json` lines of the claude CLI, so
that one reader serves both. The steps do what they say, unguarded: a script must be able to
misbehave as a session might. Standard library only: start-up counts.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_SHOWN = 16_384
_FLOOD_BLOCK = b"x" * 65_536
_GATE_CALL_S = 600
_GATE_PROTOCOL = "2025-06-18"

Answer = tuple[str, bool]
"""What a tool answers: its text, and whether that is an error."""


class Player:
    """One session: what it has said so far, and how it does each kind of step."""

    def __init__(self, tools: list[str], gate: str | None = None) -> None:
        self._turns = 0
        self._last_text = ""
        self._closed = False
        self._gate = Gate(gate) if gate else None
        # Tools of files stay in the list: a script can do what no session is given.
        named = [*tools, *(f"mcp__gate__{name}" for name in self._gate.tools)] if self._gate else tools
        servers = [{"name": "gate", "status": "connected"}] if self._gate else []
        started = {"session_id": "scripted", "model": "scripted", "tools": named, "mcp_servers": servers}
        _emit({"type": "system", "subtype": "init", **started})

    def play(self, steps: list[dict[str, Any]]) -> None:
        """Do the steps in order and close with a result, unless the last step already gave one."""
        for step in steps:
            [(kind, given)] = step.items()
            self._closed = False
            getattr(self, f"_do_{kind}")(given)
        if not self._closed:
            self._do_result({})

    def _do_say(self, text: str) -> None:
        self._last_text = text
        self._assistant({"type": "text", "text": text})

    def _do_answer(self, answer: dict[str, Any]) -> None:
        self._do_say(json.dumps(answer, ensure_ascii=False))

    def _do_write(self, given: dict[str, str]) -> None:
        shown = {"file_path": given["path"], "content": given["content"]}
        self._tool("Write", shown, lambda: _write(Path(given["path"]), given["content"]))

    def _do_edit(self, given: dict[str, str]) -> None:
        path, find, replace = given["path"], given["find"], given["replace"]
        shown = {"file_path": path, "old_string": find, "new_string": replace}
        self._tool("Edit", shown, lambda: _edit(Path(path), _bytes(find), _bytes(replace)))

    def _do_delete(self, path: str) -> None:
        self._tool("Bash", {"command": f"rm -r -- {path!r}"}, lambda: _delete(Path(path)))

    def _do_move(self, given: dict[str, str]) -> None:
        source, target = given["from"], given["to"]
        self._tool("Bash", {"command": f"mv -- {source!r} {target!r}"}, lambda: _move(Path(source), Path(target)))

    def _do_shell(self, line: str) -> None:
        self._tool("Bash", {"command": line}, lambda: _shell(line))

    def _do_gate(self, given: dict[str, Any]) -> None:
        name, arguments = given["tool"], given["arguments"]

        def act() -> Answer:
            if self._gate is None:
                return "this session has no gate", True
            answer = self._gate.ask("tools/call", {"name": name, "arguments": arguments})
            return "\n".join(block.get("text", "") for block in answer["content"]), answer.get("isError", False)

        self._tool(f"mcp__gate__{name}", arguments, act)

    def _do_result(self, given: dict[str, Any]) -> None:
        _emit(
            {
                "type": "result",
                "subtype": given.get("subtype", "success"),
                "is_error": given.get("is_error", False),
                "api_error_status": given.get("api_error_status"),
                "num_turns": given.get("turns", self._turns),
                "result": given.get("text", self._last_text),
                "total_cost_usd": given.get("cost_usd", 0),
                "usage": {name: given.get(name, 0) for name in ("input_tokens", "output_tokens")},
            }
        )
        self._closed = True

    def _do_silence(self, _: bool) -> NoReturn:
        while True:
            signal.pause()

    def _do_hang_after_result(self, _: bool) -> NoReturn:
        self._do_result({})
        self._do_silence(True)

    def _do_exit(self, code: int) -> NoReturn:
        sys.exit(code)

    def _do_raw(self, text: str) -> None:
        _put(_bytes(text))

    def _do_raw_base64(self, text: str) -> None:
        _put(base64.b64decode(text))

    def _do_flood(self, size: int) -> None:
        for start in range(0, size, len(_FLOOD_BLOCK)):
            _put(_FLOOD_BLOCK[: size - start])
        _put(b"\n")

    def _do_stderr(self, text: str) -> None:
        os.write(2, _bytes(text))

    def _tool(self, name: str, given: dict[str, Any], act: Callable[[], Answer]) -> None:
        call = f"call_{self._turns + 1}"
        self._assistant({"type": "tool_use", "id": call, "name": name, "input": given})
        try:
            text, is_error = act()
        except (OSError, ValueError) as error:
            text, is_error = f"{type(error).__name__}: {error}", True
        answer = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
        _emit({"type": "user", "message": {"role": "user", "content": [answer]}})

    def _assistant(self, block: dict[str, Any]) -> None:
        self._turns += 1
        message = {"id": f"msg_{self._turns}", "role": "assistant", "model": "scripted", "content": [block]}
        _emit({"type": "assistant", "message": message, "parent_tool_use_id": None})


class Gate:
    """The gate of this session, over the Model Context Protocol's streamable HTTP.

    Args:
        config: the file that says where it is: `{"mcpServers": {"gate": {"url": …, "headers": …}}}`.
    """

    def __init__(self, config: str) -> None:
        server = json.loads(Path(config).read_text())["mcpServers"]["gate"]
        self._host, _, self._path = server["url"].removeprefix("http://").partition("/")
        self._headers = {**server["headers"], "Accept": "application/json, text/event-stream"}
        self._headers["Content-Type"] = "application/json"
        self._number = 0
        client = {"name": "scripted", "version": "1"}
        self.ask("initialize", {"protocolVersion": _GATE_PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._headers["MCP-Protocol-Version"] = _GATE_PROTOCOL
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request's result.

        Raises:
            ValueError: the gate answered with an error, or not at all.
        """
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        for message in self._send(asked):
            if message.get("id") == self._number and "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            if "error" in message:
                raise ValueError(f"the gate: {message['error'].get('message', '')}")
        raise ValueError("the gate gave no answer")

    def _send(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages that come back for one: a JSON object alone, or a stream of events."""
        from http.client import BAD_REQUEST, HTTPConnection, HTTPException  # noqa: PLC0415 - few sessions have a gate

        connection = HTTPConnection(self._host, timeout=_GATE_CALL_S)
        try:
            connection.request("POST", f"/{self._path}", json.dumps(message), self._headers)
            response = connection.getresponse()
            text = response.read().decode()
        except HTTPException as error:
            raise ValueError(f"the gate went away: {error!r}") from error
        finally:
            connection.close()
        if response.status >= BAD_REQUEST:
            raise ValueError(f"the gate: HTTP {response.status}: {text[:_SHOWN]}")
        self._headers |= {"Mcp-Session-Id": known} if (known := response.headers.get("Mcp-Session-Id")) else {}
        if "text/event-stream" in response.headers.get("Content-Type", ""):
            found = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
            return [json.loads(line) for line in found if line.strip()]
        return [json.loads(text)] if text else []


def _emit(record: dict[str, Any]) -> None:
    _put(json.dumps(record).encode() + b"\n")


def _put(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _write(path: Path, content: str) -> Answer:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_bytes(content))
    return f"wrote {path}", False


def _edit(path: Path, find: bytes, replace: bytes) -> Answer:
    before = path.read_bytes()
    count = before.count(find)
    if count != 1:
        return f"the text to find is {count} times in {path}; it must be there once", True
    path.write_bytes(before.replace(find, replace))
    return f"edited {path}", False


def _delete(path: Path) -> Answer:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return f"deleted {path}", False


def _move(source: Path, target: Path) -> Answer:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
    return f"moved {source} to {target}", False


def _shell(line: str) -> Answer:
    # A file, not a pipe: what the line leaves running in the background must not hold this step up.
    with os.fdopen(os.memfd_create("output"), "rb") as output:
        argv = ["/bin/sh", "-c", line]
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode
        output.seek(0)
        text = output.read(_SHOWN).decode("utf-8", "replace")
    return (f"{text}\nexit code {code}" if code else text), code != 0


def main() -> None:
    """Read the order from stdin and play it."""
    order = json.load(sys.stdin)
    Player(order["tools"], order.get("gate")).play(order["steps"])


if __name__ == "__main__":
    main()
