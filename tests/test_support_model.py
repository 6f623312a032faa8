"""The scripted model, and the real command line against it."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.claude import claude_binary
from support.model import Request, ScriptedModel, Turn, fail, hang, mentions, say, text, tool, turn, use

TOOLS = [{"name": "Write"}]


def ask(model: ScriptedModel, words: str = "go", **body: Any) -> Any:
    raw = json.dumps({"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": words}], **body}).encode()
    request = urllib.request.Request(f"{model.url}/v1/messages?beta=true", raw)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode() if body.get("stream") else json.load(answer)


def said(answer: Any) -> str:
    return "".join(block.get("text", "") for block in answer["content"])


def events(stream: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]


def test_turns_are_taken_in_order_and_then_the_script_is_over() -> None:
    with ScriptedModel([say("one"), say("two")]) as model:
        assert [said(ask(model)) for _ in range(3)] == ["one", "two", "END OF SCRIPT"]


def test_a_request_without_tools_takes_no_turn() -> None:
    with ScriptedModel([say("one")]) as model:
        assert [said(ask(model, tools=[])), said(ask(model))] == ["ok", "one"]
        assert [request.tools for request in model.asked] == [["Write"]]


def test_a_stream_carries_each_block_and_how_it_ended() -> None:
    with ScriptedModel([turn(text("soon"), tool("Write", file_path="/x"), output_tokens=7)]) as model:
        stream = events(ask(model, stream=True))
    assert [event["type"] for event in stream] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert json.loads(stream[5]["delta"]["partial_json"]) == {"file_path": "/x"}
    assert stream[-2]["delta"]["stop_reason"] == "tool_use"
    assert stream[-2]["usage"]["output_tokens"] == 7


def test_sessions_at_once_each_follow_their_own_script() -> None:
    with ScriptedModel([say("anyone")]) as model:
        model.route(mentions("first"), [say("1a"), say("1b")]).route(mentions("second"), [say("2a"), say("2b")])
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda words: [said(ask(model, words)) for _ in range(2)], ["first", "second"]))
        assert [*both, said(ask(model, "third"))] == [["1a", "1b"], ["2a", "2b"], "anyone"]


def test_every_message_has_an_id_of_its_own() -> None:
    with ScriptedModel() as model:
        streamed = [events(ask(model, stream=True))[0]["message"]["id"] for _ in range(2)]
        assert len({ask(model)["id"], ask(model, tools=[])["id"], *streamed}) == 4


def test_a_provider_error_is_answered_with_its_status_and_kind() -> None:
    with ScriptedModel([fail(529, "overloaded_error")]) as model, pytest.raises(urllib.error.HTTPError) as raised:
        ask(model)
    assert raised.value.code == 529
    assert json.load(raised.value)["error"]["type"] == "overloaded_error"


def test_a_turn_can_be_held_back_until_the_test_says_so() -> None:
    go = threading.Event()
    with ScriptedModel([turn(text("now"), after=go)]) as model, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, model)
        assert not waiting.done()
        go.set()
        assert said(waiting.result(10)) == "now"


def test_a_turn_that_hangs_ends_when_the_model_is_closed() -> None:
    arrived = threading.Event()

    def hangs(request: Request) -> Turn:
        arrived.set()
        return hang()

    with ThreadPoolExecutor(1) as pool:
        with ScriptedModel([hangs]) as model:
            waiting = pool.submit(ask, model)
            assert arrived.wait(10)
        assert isinstance(waiting.exception(10), OSError)


def run_claude(model: ScriptedModel, tree: Path, home: Path, prompt: str) -> list[dict[str, Any]]:
    """One session of the real command line in `tree`; the events it printed."""
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [
            *[str(claude_binary()), "--print", "--output-format", "stream-json", "--verbose"],
            *["--setting-sources", "", "--strict-mcp-config", "--permission-mode", "acceptEdits"],
            *["--tools", "Read,Write", "--allowedTools", "Read,Write", "--max-turns", "5"],
        ],
        cwd=tree,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
            **quiet,
        },
        input=prompt.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_real_claude_completes_a_session_and_writes_a_file(tmp_path: Path, home: Path) -> None:
    def write(request: Request) -> Turn:
        return use("Write", file_path=f"{request.cwd}/note.txt", content="written\n")

    with ScriptedModel([write, say("all done")]) as model:
        printed = run_claude(model, tmp_path, home, "Write the note.")
        assert (tmp_path / "note.txt").read_text() == "written\n"
        assert printed[-1]["type"] == "result"
        assert (printed[-1]["is_error"], printed[-1]["result"]) == (False, "all done")
        assert set(model.asked[0].tools) == {"Read", "Write"}
        assert "Write the note." in model.asked[0].messages[0]
