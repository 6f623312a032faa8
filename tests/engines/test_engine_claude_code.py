from __future__ import annotations

from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.engines.claude_code import SYSTEM_LIMIT, ClaudeCode
from support.sessions import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def flag(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize(
    ("door", "tools", "mode"),
    [(Door.IMPLEMENT, "Bash,Read,Edit,Write,Glob,Grep", "acceptEdits"), (Door.ASSESS, "Read,Glob,Grep", "dontAsk")],
)
def test_each_door_has_its_tools_and_no_others(stage: Stage, door: Door, tools: str, mode: str) -> None:
    argv = ClaudeCode("/opt/claude").command(stage.order(door, turns=7), None).argv
    assert argv[0] == "/opt/claude"
    assert flag(argv, "--tools") == flag(argv, "--allowedTools") == tools
    assert (flag(argv, "--permission-mode"), flag(argv, "--max-turns")) == (mode, "7")
    assert flag(argv, "--setting-sources") == ""
    assert "--strict-mcp-config" in argv


def test_a_session_whose_only_pen_is_the_gate_has_its_tools_and_no_others(stage: Stage) -> None:
    place = stage.base / "home" / "gate.json"
    argv = ClaudeCode().command(stage.order(gate=place), None).argv
    assert (flag(argv, "--tools"), flag(argv, "--allowedTools")) == ("Read,Glob,Grep", "Read,Glob,Grep,mcp__gate__*")
    assert (flag(argv, "--mcp-config"), flag(argv, "--permission-mode")) == (str(place), "dontAsk")
    assert "--mcp-config" not in ClaudeCode().command(stage.order(), None).argv


def test_the_command_line_is_told_what_it_may_cost_when_there_is_a_limit(stage: Stage) -> None:
    argv = ClaudeCode().command(stage.order(cost_usd=0.000001), None).argv
    assert flag(argv, "--max-budget-usd") == "0.000001"
    assert "--max-budget-usd" not in ClaudeCode().command(stage.order(), None).argv


def test_the_prompt_travels_on_stdin_and_never_in_the_argv(stage: Stage) -> None:
    prompt = "--help\n" + "é" * 140_000
    command = ClaudeCode().command(stage.order(prompt=prompt), None)
    assert command.stdin.decode() == prompt
    assert sum(map(len, command.argv)) < 1000


def test_the_environment_is_whole_and_holds_only_what_was_listed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    order = stage.order(credentials={"ANTHROPIC_BASE_URL": "http://x"})
    env = ClaudeCode().command(order, None).env
    assert env["HOME"] == str(order.home)
    assert env["TMPDIR"] == env["CLAUDE_CODE_TMPDIR"] == str(order.temporary)
    assert (env["PATH"], env["ANTHROPIC_BASE_URL"]) == (order.path, "http://x")
    assert "GITHUB_TOKEN" not in env


@pytest.mark.parametrize(
    ("credentials", "secret", "variable"),
    [
        ({"CLAUDE_CODE_OAUTH_TOKEN": "o"}, b"o", "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"),
        ({"ANTHROPIC_API_KEY": "k"}, b"k", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "o", "ANTHROPIC_API_KEY": "k"}, b"k", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"),
    ],
)
def test_a_key_or_token_goes_by_descriptor(
    stage: Stage, credentials: dict[str, str], secret: bytes, variable: str
) -> None:
    engine, order = ClaudeCode(), stage.order(credentials=credentials)
    command = engine.command(order, 9)
    assert engine.secret(order) == secret
    assert (command.env[variable], command.pass_fds) == ("9", (9,))
    assert not credentials.keys() & command.env.keys()


def test_without_a_key_nothing_is_handed_over(stage: Stage) -> None:
    order = stage.order(credentials={"ANTHROPIC_AUTH_TOKEN": "a"})
    command = ClaudeCode().command(order, None)
    assert ClaudeCode().secret(order) == b""
    assert (command.pass_fds, command.env["ANTHROPIC_AUTH_TOKEN"]) == ((), "a")


def test_an_order_does_not_show_its_credentials(stage: Stage) -> None:
    assert "the-key" not in repr(stage.order(credentials={"ANTHROPIC_API_KEY": "the-key"}))


def test_a_system_prompt_that_no_argument_can_hold_is_refused_with_what_to_shorten(stage: Stage) -> None:
    assert ClaudeCode().command(stage.order(system="x" * SYSTEM_LIMIT), None).argv
    with pytest.raises(ActorError) as raised:
        ClaudeCode().command(stage.order(system="é" * SYSTEM_LIMIT), None)
    assert raised.value.code is Code.UNFIT
    assert str(raised.value) == (
        "the cards make a system prompt of 204,800 bytes; a session takes 102,400; "
        "shorten what they say about implement-task"
    )
