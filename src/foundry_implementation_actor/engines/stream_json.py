"""Reading one line of the `stream-json` output that the claude CLI defines and the player speaks.

An assistant message arrives as one line for each of its content blocks, all with the same
`message.id`: that id is the turn. A message of a sub-agent (`parent_tool_use_id` is set) and one
that the CLI made up itself (model `<synthetic>`) belong to no turn, so that the actor counts what
`--max-turns` counts; their tokens count all the same. Usage in these lines was stated before the
output was written; only the `result` line's is final.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from foundry_implementation_actor.domain.price import Usage, count
from foundry_implementation_actor.engines.port import (
    Fault,
    Init,
    Other,
    Result,
    Said,
    Spent,
    StreamEvent,
    ToolCall,
    ToolResult,
)

_SYNTHETIC = "<synthetic>"
_MOST = 10**9
_LIMITS: dict[str, Fault] = {"error_max_turns": "turns", "error_max_budget_usd": "money"}


def read_line(line: bytes) -> tuple[StreamEvent, ...]:
    """The events of one line of stdout, without its end. Never raises.

    A blank line says nothing. A line that is no JSON object of this format becomes an `Other`. Texts are
    whole: they are cut where they are recorded, once no secret can be cut with them.
    """
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return ()
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return (Other("not-json", text),)
    if not isinstance(record, dict):
        return (Other("not-an-object", text),)
    return tuple(_events(record))


def _events(record: dict[str, Any]) -> Iterator[StreamEvent]:
    match record.get("type"):
        case "assistant":
            yield from _assistant(record)
        case "user":
            yield from _user(record)
        case "result":
            yield _result(record)
        case "system" if record.get("subtype") == "init":
            yield _init(record)
        case kind:
            name = "/".join(_text(part) for part in (kind, record.get("subtype")) if part)
            yield Other(name or "no-type", _json(record))


def _init(record: dict[str, Any]) -> Init:
    servers = [server for server in _list(record.get("mcp_servers")) if isinstance(server, dict)]
    return Init(
        session_id=_text(record.get("session_id")),
        model=_text(record.get("model")),
        tools=tuple(_text(tool) for tool in _list(record.get("tools"))),
        mcp_servers=tuple(f"{_text(server.get('name'))}: {_text(server.get('status'))}" for server in servers),
        permission_mode=_text(record.get("permissionMode")),
    )


def _assistant(record: dict[str, Any]) -> Iterator[StreamEvent]:
    message = _object(record.get("message"))
    made_up = message.get("model") == _SYNTHETIC
    name = _text(message.get("id") or record.get("uuid") or "?")
    turn = "" if made_up or record.get("parent_tool_use_id") else name
    for block in _blocks(message):
        match block.get("type"):
            case "text":
                yield Said(turn, "text", _text(block.get("text")))
            case "thinking":
                yield Said(turn, "thinking", _text(block.get("thinking")))
            case "tool_use":
                yield ToolCall(turn, _text(block.get("name")), _json(block.get("input")))
            case kind:
                yield Said(turn, "thinking", f"[{_text(kind)}]")
    usage = _object(message.get("usage"))
    if usage and not made_up:
        yield Spent(name, _text(message.get("model")), Usage.stated(usage), _length(message))


def _length(message: dict[str, Any]) -> int:
    """What the model wrote in these blocks, in bytes of UTF-8."""
    blocks = _blocks(message)
    written = (_text(block.get("text") or block.get("thinking") or block.get("input")) for block in blocks)
    return sum(len(part.encode("utf-8", "replace")) for part in written)


def _user(record: dict[str, Any]) -> Iterator[StreamEvent]:
    for block in _blocks(_object(record.get("message"))):
        if block.get("type") == "tool_result":
            yield ToolResult(_plain(block.get("content")), block.get("is_error") is True)


def _result(record: dict[str, Any]) -> Result:
    usage = _object(record.get("usage"))
    cached = sum(count(usage.get(f"cache_{kind}_input_tokens")) for kind in ("creation", "read"))
    errors = "; ".join(_text(error) for error in _list(record.get("errors")))
    cost, status = record.get("total_cost_usd"), record.get("api_error_status")
    text = _text(record.get("result") or errors)
    return Result(
        fault=_fault(record),
        text=f"HTTP {_text(status)}: {text}" if status else text,
        turns=count(record.get("num_turns")),
        cost_usd=float(cost) if isinstance(cost, int | float) and 0 <= cost < _MOST else 0.0,
        input_tokens=count(usage.get("input_tokens")) + cached,
        output_tokens=count(usage.get("output_tokens")),
    )


def _fault(record: dict[str, Any]) -> Fault:
    """Judged by `is_error`; `subtype` only tells the kinds of error apart.

    The CLI writes `subtype: success` with `is_error: true` when the model's service answered with
    an error, refused, or could not be reached.
    """
    subtype = _text(record.get("subtype"))
    if record.get("is_error") is not True and subtype == "success":
        return ""
    if subtype in _LIMITS:
        return _LIMITS[subtype]
    return "provider" if subtype == "success" or record.get("api_error_status") else "engine"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in _list(content) if isinstance(block, dict)]


def _plain(content: object) -> str:
    """A tool's answer as text: it is a string, or a list of blocks of which some are text."""
    if not isinstance(content, list):
        return _text(content)
    return "\n".join(
        _text(block.get("text")) if block.get("type") == "text" else f"[{_text(block.get('type'))}]"
        for block in content
        if isinstance(block, dict)
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        # What could just be read may be too deep to write from where this is called.
        return "[nested too deep]"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
