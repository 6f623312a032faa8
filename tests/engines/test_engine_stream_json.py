from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.domain.price import Usage
from foundry_implementation_actor.engines.port import (
    Init,
    Other,
    Result,
    Said,
    Spent,
    StreamEvent,
    ToolCall,
    ToolResult,
)
from foundry_implementation_actor.engines.stream_json import read_line
from foundry_implementation_actor.session.transcript import record


def read(record: object) -> tuple[StreamEvent, ...]:
    return read_line(json.dumps(record).encode())


def assistant(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m1", "model": "opus", "content": list(blocks)}, **fields}


def test_init_says_what_the_session_has() -> None:
    servers = [{"name": "gate", "status": "connected"}]
    record = {
        "session_id": "s",
        "model": "opus",
        "tools": ["Bash"],
        "mcp_servers": servers,
        "permissionMode": "default",
    }
    assert read({"type": "system", "subtype": "init", **record}) == (
        Init("s", "opus", ("Bash",), ("gate: connected",), "default"),
    )


def test_each_block_of_a_message_is_an_event_of_the_same_turn() -> None:
    blocks = (
        {"type": "text", "text": "hello"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
        {"type": "redacted_thinking", "data": "…"},
    )
    assert read(assistant(*blocks)) == (
        Said("m1", "text", "hello"),
        Said("m1", "thinking", "hm"),
        ToolCall("m1", "Bash", '{"command": "ls"}'),
        Said("m1", "thinking", "[redacted_thinking]"),
    )


def test_what_the_cli_made_up_itself_is_no_turn() -> None:
    record = assistant({"type": "text", "text": "API Error"})
    record["message"]["model"] = "<synthetic>"
    assert read(record) == (Said("", "text", "API Error"),)


def test_a_sub_agents_message_is_no_turn_of_the_session() -> None:
    assert read(assistant({"type": "text", "text": "x"}, parent_tool_use_id="toolu_1")) == (Said("", "text", "x"),)


@pytest.mark.parametrize("parent", [None, "toolu_1"])
def test_a_message_says_what_it_has_spent_also_in_a_sub_agent(parent: str | None) -> None:
    hours = {"ephemeral_1h_input_tokens": 2}
    usage = {
        "input_tokens": 1, "output_tokens": 4, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 3,
        "cache_creation": hours,
    }  # fmt: skip
    record = assistant({"type": "text", "text": "né"}, parent_tool_use_id=parent)
    record["message"]["usage"] = usage
    *_, spent = read(record)
    assert spent == Spent("m1", "opus", Usage(1, 4, 3, 2, 3), 3)


def test_what_the_cli_made_up_itself_is_free() -> None:
    record = assistant({"type": "text", "text": "API Error"})
    record["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 5}}
    assert read(record) == (Said("", "text", "API Error"),)


def test_a_message_without_an_id_is_a_turn_by_its_own_uuid() -> None:
    record = {"type": "assistant", "message": {"content": "plain"}, "uuid": "u"}
    assert read(record) == (Said("u", "text", "plain"),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("out", "out"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\n[image]\nb"),
        (None, ""),
        (3, "3"),
    ],
)
def test_a_tools_answer_is_read_as_text(content: object, text: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": True}
    assert read({"type": "user", "message": {"content": [block]}}) == (ToolResult(text, is_error=True),)


OK = {"type": "result", "subtype": "success", "is_error": False}


def test_a_result_carries_the_costs_with_cached_input_counted_in() -> None:
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4, "output_tokens": 8}
    record = OK | {"result": "done", "num_turns": 3, "total_cost_usd": 0.5, "usage": usage}
    assert read(record) == (Result("", "done", 3, 0.5, 7, 8),)


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({}, ""),
        ({"is_error": True}, "provider"),
        ({"is_error": True, "api_error_status": 429}, "provider"),
        ({"is_error": True, "subtype": "error_max_turns"}, "turns"),
        ({"is_error": True, "subtype": "error_max_budget_usd"}, "money"),
        ({"is_error": True, "subtype": ["error_max_turns"]}, "engine"),
        ({"is_error": True, "subtype": "error_during_execution"}, "engine"),
        ({"is_error": False, "subtype": "error_during_execution"}, "engine"),
        ({"is_error": None, "subtype": None}, "engine"),
    ],
)
def test_a_result_is_judged_by_is_error(record: dict[str, Any], fault: str) -> None:
    *_, result = read(OK | record)
    assert isinstance(result, Result)
    assert result.fault == fault


def test_an_api_status_stands_before_the_text() -> None:
    [result] = read(OK | {"is_error": True, "api_error_status": 529, "result": "overloaded"})
    assert isinstance(result, Result)
    assert result.text == "HTTP 529: overloaded"


def test_an_unknown_kind_is_kept_by_name() -> None:
    assert read({"type": "system", "subtype": "api_retry"}) == (
        Other("system/api_retry", '{"type": "system", "subtype": "api_retry"}'),
    )


@pytest.mark.parametrize(
    ("line", "kind"), [(b"[]", "not-an-object"), (b"null", "not-an-object"), (b"{", "not-json"), (b"{}", "no-type")]
)
def test_a_line_of_another_shape_is_kept_by_what_it_is_not(line: bytes, kind: str) -> None:
    [other] = read_line(line)
    assert isinstance(other, Other)
    assert other.kind == kind


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_a_blank_line_says_nothing(line: bytes) -> None:
    assert read_line(line) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = ("message", "id", "content", "usage", "result", "errors", "num_turns", "total_cost_usd", "tools", "mcp_servers")
TYPES = st.sampled_from(["assistant", "user", "result", "system", "stream_event"]) | JSON


@given(st.binary())
def test_any_bytes_are_tolerated(line: bytes) -> None:
    read_line(line)


@given(TYPES, st.sampled_from(["init", "success"]) | JSON, st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_shape_is_tolerated(kind: object, subtype: object, fields: dict[str, Any]) -> None:
    message = {key: fields[key] for key in fields if key in {"id", "content"}}
    read({"message": message, **fields, "type": kind, "subtype": subtype})


def test_no_depth_of_nesting_raises() -> None:
    for depth in range(sys.getrecursionlimit() - 120, sys.getrecursionlimit() + 20):
        for head in (b'{"type":"x","a":', b'{"type":"assistant","message":{"content":[{"type":"tool_use","input":'):
            tail = b"}" if head.endswith(b'"a":') else b"}]}}"
            for event in read_line(head + b"[" * depth + b"]" * depth + tail):
                record(event, str)
