"""The gate over the Model Context Protocol, asked by the official client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import anyio
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from foundry_implementation_actor.gate import ledger
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.mcp_server.server import gate_server
from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST, WAITING, python_app, sources

CART = {"plugin": "shop", "class": "Cart"}
CART_TEST = {"plugin": "shop", "class": "TestCart"}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return python_app(tmp_path / "app", made=False)


@pytest.fixture
def nowhere() -> Iterator[TextIO]:
    with Path(os.devnull).open("w") as file:
        yield file


def run(server: Any, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def session() -> None:
        with anyio.fail_after(60):
            async with Client(server) as connected:
                await talk(connected)

    anyio.run(session)


def in_process(app: Path) -> Any:
    return gate_server(lambda: Gate(House.open(app)), "0")


def over_stdio(app: Path, errors: TextIO) -> Any:
    words = ["-m", "foundry_implementation_actor.cli", "mcp", "--app", str(app)]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    return stdio_client(StdioServerParameters(command=sys.executable, args=words, env=environment), errlog=errors)


async def ask(connected: Client, tool: str, /, **arguments: Any) -> tuple[bool, Any]:
    """Call a tool; gives whether it went well and its structured answer."""
    result = await connected.call_tool(tool, arguments)
    assert result.is_error is not result.structured_content["ok"]
    return not result.is_error, result.structured_content


def test_the_tools_say_what_they_take_and_whether_they_only_read(app: Path) -> None:
    async def talk(connected: Client) -> None:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert list(tools) == ["make", "implement", "edit", "read", "test", "status"]
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == {"read", "test", "status"}
        assert all(hint and hint.destructive_hint is False and hint.open_world_hint is False for hint in hints.values())
        assert "path" not in str(tools["implement"].input_schema["properties"].keys())

    run(in_process(app), talk)


def test_over_stdio_a_test_lands_a_fake_is_refused_by_it_and_the_real_body_lands(app: Path, nowhere: TextIO) -> None:
    notes: list[str | None] = []

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        notes.append(message)

    async def talk(connected: Client) -> None:
        for kind, name in (("plugin", ""), ("service", "Cart"), ("test", "Cart")):
            assert (await ask(connected, "make", kind=kind, plugin="shop", name=name))[0]
        assert (await ask(connected, "implement", **CART_TEST, content=TEST))[0]
        before = (app / SCAFFOLD).read_bytes()
        landed, refused = await ask(connected, "implement", **CART, content=FAKE)
        assert (landed, refused["code"], "refused by own-test" in refused["error"]) == (False, "refused", True)
        assert (app / SCAFFOLD).read_bytes() == before
        result = await connected.call_tool("implement", {**CART, "content": HONEST}, progress_callback=noted)
        assert result.structured_content["ok"]
        assert (app / SCAFFOLD).read_text() == HONEST
        assert (await ask(connected, "test", **CART))[0]

    run(over_stdio(app, nowhere), talk)
    assert "own-test: shop.Cart" in notes


def test_read_edit_and_status_see_what_stands(app: Path) -> None:
    python_app(app)

    async def talk(connected: Client) -> None:
        _, text = await ask(connected, "read", **CART)
        assert text["content"] == (app / SCAFFOLD).read_text()
        pair = {"find": "To be written: what it does.", "replace": "What is bought."}
        stale = await ask(connected, "edit", **CART, edits=[pair], expect="0" * 64)
        assert (stale[0], "is not the text that was expected" in stale[1]["error"]) == (False, True)
        assert (await ask(connected, "edit", **CART, edits=[pair], expect=text["digest"]))[0]
        assert (await ask(connected, "implement", **CART, mode="start", content="x"))[0]
        _, status = await ask(connected, "status")
        assert [(one["class"], one["bytes"]) for one in status["staged"]] == [("Cart", 1)]

    run(in_process(app), talk)
    assert "What is bought." in (app / SCAFFOLD).read_text()


SENSELESS: list[tuple[str, dict[str, Any]]] = [
    ("implement", {}),
    ("implement", {"plugin": "../x", "class": "Cart", "content": ""}),
    ("implement", {"plugin": 3, "class": ["Cart"], "content": None, "mode": "sideways"}),
    ("implement", {**CART, "content": "x" * 8_193}),
    ("implement", {"batch": "all"}),
    ("edit", {**CART, "edits": [{"find": "x"}]}),
    ("read", {}),
    ("make", {"kind": None}),
    ("make", {"kind": "spaceship", "plugin": "shop"}),
    ("destroy", {}),
]


def test_a_call_that_makes_no_sense_is_an_answer(app: Path) -> None:
    python_app(app)
    before = sources(app)

    async def talk(connected: Client) -> None:
        for tool, arguments in SENSELESS:
            landed, given = await ask(connected, tool, **arguments)
            assert (landed, bool(given["error"])) == (False, True)

    run(in_process(app), talk)
    assert sources(app) == before


def mcp_command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "foundry_implementation_actor.cli", "mcp", *map(str, words)]


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_folder_that_is_not_there_ends_the_server_before_it_answers_anybody(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    # No client closes the pipe, as none does that waits for its answer.
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            mcp_command("--app", tmp_path / name), stdin=reading, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path / name}: is no folder\nhint: name the app's root\n"


def test_a_client_is_told_that_the_folder_is_not_there_and_is_not_connected(tmp_path: Path) -> None:
    looked_connected: list[Client] = []

    async def talk(connected: Client) -> None:
        looked_connected.append(connected)

    with (tmp_path / "errors").open("w") as errors, pytest.raises(ExceptionGroup) as ended:
        run(over_stdio(tmp_path / "nowhere", errors), talk)
    assert ended.group_contains(MCPError, match="Connection closed")
    assert not looked_connected
    assert "is no folder" in (tmp_path / "errors").read_text()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no app here or in a folder above"),
        ({"gate.yaml": "language: python\nsorce: lib\n"}, "sorce"),
        ({"gate.yaml": "source: lib\n"}, "language"),
    ],
)
def test_a_folder_without_an_app_is_told_at_the_start_and_by_the_tools(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    (tmp_path / "app").mkdir()
    for name, text in files.items():
        (tmp_path / "app" / name).write_text(text)

    async def talk(connected: Client) -> None:
        told = (tmp_path / "errors").read_text()
        assert told.startswith("warning: ")
        assert told.endswith("; every tool says so until it is mended\n")
        assert said in told
        answered, given = await ask(connected, "status")
        assert (answered, said in given["error"]) == (False, True)

    with (tmp_path / "errors").open("w") as errors:
        run(over_stdio(tmp_path / "app", errors), talk)


def test_an_app_that_is_not_there_is_said_at_each_call_and_a_new_one_is_seen_at_once(tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()

    async def talk(connected: Client) -> None:
        landed, given = await ask(connected, "status")
        assert (landed, "no app" in given["error"]) == (False, True)
        python_app(tmp_path / "later")
        assert (await ask(connected, "status"))[0]

    run(in_process(tmp_path / "later"), talk)


def test_a_key_that_nobody_reads_is_refused_by_schema_and_by_the_call(app: Path) -> None:
    python_app(app)
    before = sources(app)
    unread: list[tuple[str, dict[str, Any]]] = [
        ("implement", {**CART, "content": HONEST, "expct": "0" * 64}),
        ("edit", {**CART, "edits": [{"find": "x", "replace": "y"}], "content": "x"}),
        ("read", {**CART, "path": "x"}),
        ("test", {**CART, "path": "x"}),
        ("make", {"kind": "service", "plugin": "shop", "name": "Bill", "path": "/etc"}),
        ("status", {"a": 1}),
    ]

    async def talk(connected: Client) -> None:
        for tool in (await connected.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False
        for name, arguments in unread:
            landed, given = await ask(connected, name, **arguments)
            assert (landed, "is no key of" in given["error"]) == (False, True)

    run(in_process(app), talk)
    assert sources(app) == before


class Raw:
    """The server as a process, spoken to line by line."""

    def __init__(self, app: Path) -> None:
        words = [sys.executable, "-m", "foundry_implementation_actor.cli", "mcp", "--app", str(app)]
        self.server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.tell("initialize", hello, 1)
        self.tell("notifications/initialized", {})
        self.heard("id", 1)

    def say(self, line: str) -> None:
        assert self.server.stdin
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()

    def tell(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        self.say(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})})
        )

    def heard(self, key: str, value: Any) -> Any:
        """The next line with this value; those before it are passed over."""
        assert self.server.stdout
        return next(one for one in map(json.loads, self.server.stdout) if one.get(key) == value)

    def implement(self, content: str, number: int) -> None:
        """Ask for a landing, and wait until it is being judged."""
        called = {"name": "implement", "arguments": {**CART, "content": content}, "_meta": {"progressToken": "t"}}
        self.tell("tools/call", called, number)
        self.heard("method", "notifications/progress")

    def end(self) -> None:
        """Go away, and wait for the server to end."""
        with self.server as server:
            assert server.stdin
            server.stdin.close()
            assert server.wait(60) == 0


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_call_that_is_cancelled_does_not_land_and_one_whose_client_went_away_is_finished(
    app: Path, *, cancelled: bool
) -> None:
    python_app(app)
    (app / OWN_TEST).write_text(WAITING)
    before, raw = (app / SCAFFOLD).read_text(), Raw(app)
    raw.implement(HONEST, 7)
    if cancelled:
        raw.tell("notifications/cancelled", {"requestId": 7})
    raw.tell("ping", {}, 8)
    raw.heard("id", 8)
    (app / "go").touch()
    raw.end()
    [entry] = ledger.entries(app)
    assert (entry["landed"], "took the call back" in str(entry["because"])) == (not cancelled, cancelled)
    assert (app / SCAFFOLD).read_text() == (before if cancelled else HONEST)


def test_a_call_that_holds_half_of_a_character_gets_an_answer(app: Path) -> None:
    raw = Raw(python_app(app))
    raw.say("not json")
    raw.tell("tools/call", {"name": "implement", "arguments": {**CART, "content": "\ud800"}}, 7)
    assert "half of a character" in raw.heard("id", 7)["error"]["message"]
    raw.tell("ping", {}, 8)
    assert "result" in raw.heard("id", 8)
    raw.end()


def test_two_calls_at_once_both_get_their_answer(app: Path) -> None:
    python_app(app)

    async def talk(connected: Client) -> None:
        async with anyio.create_task_group() as both:
            for arguments in ({**CART_TEST, "content": TEST}, {**CART, "content": HONEST}):
                both.start_soon(connected.call_tool, "implement", arguments)

    run(in_process(app), talk)
    assert ((app / SCAFFOLD).read_text(), (app / OWN_TEST).read_text()) == (HONEST, TEST)


def test_a_finish_that_the_client_gave_up_goes_on_and_asked_again_is_joined(app: Path, nowhere: TextIO) -> None:
    python_app(app)
    (app / OWN_TEST).write_text(WAITING)

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        if "another finish" in str(message):
            (app / "go").touch()

    async def talk(connected: Client) -> None:
        await ask(connected, "implement", **CART, mode="start", content=HONEST)
        finish = {**CART, "mode": "finish"}
        with pytest.raises(MCPError):
            await connected.call_tool("implement", finish, read_timeout_seconds=1)
        again = await connected.call_tool("implement", finish, progress_callback=noted)
        assert again.structured_content["ok"]
        assert (await connected.call_tool("implement", finish)).structured_content == again.structured_content

    run(over_stdio(app, nowhere), talk)
    assert (app / SCAFFOLD).read_text() == HONEST
    assert [entry["act"] for entry in ledger.entries(app)] == ["finish"]
