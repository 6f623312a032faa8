from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.domain.run import Budget, Cause, Door, SessionEnd
from foundry_implementation_actor.engines.port import Init, Other, Result, Said, StreamEvent, ToolCall, ToolResult
from foundry_implementation_actor.engines.stream_json import read_line
from foundry_implementation_actor.session.budget import explain
from foundry_implementation_actor.session.tally import Tally
from foundry_implementation_actor.session.transcript import Line, Lines, record
from foundry_implementation_actor.system.secrets import redactor

BUDGET = Budget(60, "MAX_TURNS", 1800, "SESSION_TIMEOUT_S", 300, "SILENCE_TIMEOUT_S", 2.5, 9, 10, 11, 12, 13)


def split(chunks: list[bytes], limit: int = 100_000) -> list[Line]:
    lines = Lines(limit)
    return [line for chunk in chunks for line in lines.feed(chunk)] + list(lines.rest())


def test_lf_and_crlf_end_a_line_and_the_last_needs_neither() -> None:
    assert [line.content for line in split([b"a\r\nb\n\nc"])] == [b"a", b"b", b"", b"c"]


@given(st.lists(st.text("ab\r\n", max_size=9).map(str.encode), max_size=9))
def test_where_the_chunks_are_cut_makes_no_difference(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assert split(chunks) == split([whole]) == split([whole[at : at + 1] for at in range(len(whole))])


@given(st.lists(st.binary(max_size=60)), st.integers(1, 50))
def test_no_byte_is_lost_uncounted(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    kept = sum(len(line.content) + line.dropped for line in split(chunks, limit))
    assert kept + whole.count(b"\n") + whole.count(b"\r") >= len(whole) >= kept


def test_a_line_above_the_limit_keeps_its_head_and_the_next_line_is_whole() -> None:
    head, after = split([b"x" * 9_000, b"y" * 9_000 + b"\nnext\n"], limit=10_000)
    assert head == Line(b"x" * 9_000 + b"y" * 1_000, 8_000)
    assert after == Line(b"next")


EVENTS: list[tuple[StreamEvent, str, dict[str, Any]]] = [
    (Init("s", "opus", ("Bash",), ("x: connected",), "default"), "session-start", {"model": "opus", "tools": ["Bash"]}),
    (Said("m", "text", "hello"), "session-text", {"text": "hello"}),
    (Said("m", "thinking", "hm"), "session-thought", {"text": "hm"}),
    (ToolCall("m", "Bash", '{"command": "ls"}'), "session-tool", {"tool": "Bash", "input": '{"command": "ls"}'}),
    (ToolResult("out", is_error=True), "session-tool-result", {"text": "out", "is_error": True}),
    (Result("turns", "cut", 3), "session-result", {"fault": "turns", "turns": 3}),
    (Other("system/status", "{}"), "session-note", {"kind": "system/status"}),
]


@pytest.mark.parametrize(("event", "step", "fields"), EVENTS)
def test_each_event_has_a_record(event: StreamEvent, step: str, fields: dict[str, Any]) -> None:
    written = record(event, str)
    assert (written["event"], written["step"]) == ("event", step)
    assert fields.items() <= written.items()
    json.dumps(written)


def test_prose_is_kept_longer_than_what_goes_through_a_tool() -> None:
    long = "x" * 100_000
    assert 30_000 < len(record(Said("m", "text", long), str)["text"]) <= 32 * 1024
    assert 3_000 < len(record(ToolResult(long), str)["text"]) <= 4 * 1024
    assert 3_000 < len(record(ToolCall("m", "Write", long), str)["input"]) <= 4 * 1024


def test_the_end_of_stderr_is_kept_from_a_whole_word_on() -> None:
    tally = Tally()
    for _ in range(100):
        tally.hear(b"0123456789" * 50 + b" ")
    tally.hear(b"at last")
    detail = tally.closed(1).detail
    assert detail.endswith("at last")
    assert detail.partition("stderr: ")[2].split()[0] == "0123456789" * 50


SECRET = "tok-" + "0123456789abcdef" * 4
HIDE = redactor([SECRET])


def parts_of(secret: str) -> set[str]:
    """What must not be seen of a secret: any eight characters of it."""
    return {secret[at : at + 8] for at in range(len(secret) - 7)}


@pytest.mark.parametrize("offset", range(0, 80, 8))
def test_no_half_of_a_secret_is_left_where_stderr_is_cut(offset: int) -> None:
    tally = Tally(HIDE)
    tally.hear(b"x " * 40_000 + SECRET.encode() + b"y" * (4096 - offset))
    assert not any(part in tally.closed(1).detail for part in parts_of(SECRET))


@pytest.mark.parametrize("offset", range(0, 80, 8))
def test_no_half_of_a_secret_is_left_where_a_text_is_cut(offset: int) -> None:
    lines = [
        b"x" * (2000 - offset) + SECRET.encode() + b"x" * 9000,
        json.dumps({"type": "x", "y": "x" * (2000 - offset) + SECRET + "x" * 9000}).encode(),
    ]
    for line in lines:
        [event] = read_line(line)
        assert not any(part in record(event, HIDE)["text"] for part in parts_of(SECRET))


@pytest.mark.parametrize("offset", range(0, 80, 8))
def test_no_half_of_a_secret_is_left_of_a_line_that_is_too_long(offset: int) -> None:
    [line] = split([b"x" * (65_536 - offset) + SECRET.encode() + b"x" * 100_000], limit=100_000)
    note = record(Other("line-too-long", line.content.decode()), HIDE)
    assert not any(part in note["text"] for part in parts_of(SECRET))


ENDS = [
    (Cause.TURNS, "", "used up its budget of 60 turns", "raise MAX_TURNS (now 60)"),
    (Cause.CLOCK, "", "used up its budget of 1800 seconds", "raise SESSION_TIMEOUT_S (now 1800)"),
    (Cause.SILENT, "", "said nothing for 300 seconds", "raise SILENCE_TIMEOUT_S (now 300)"),
    (Cause.MONEY, "", "used up its budget of 2.5 US dollars", "raise MAX_COST_USD (now 2.5)"),
    (Cause.OUTPUT, "", "printed more than 9 bytes", "raise MAX_OUTPUT_BYTES (now 9)"),
    (Cause.DISK, "had 12", "wrote more than 10 bytes to disk (had 12)", "raise MAX_DISK_BYTES (now 10)"),
    (Cause.FILES, "had 12", "made more than 11 files (had 12)", "raise MAX_DISK_FILES (now 11)"),
    (Cause.PROCESSES, "", "had more than 12 processes at once", "raise MAX_PROCESSES (now 12)"),
    (Cause.MEMORY, "", "held more than 13 bytes of memory", "raise MAX_MEMORY_BYTES (now 13)"),
    (Cause.ESCAPED, "one is left", "cannot be trusted to be over: one is left", "end it"),
    (Cause.PROVIDER, "HTTP 429:\n{limit}", "HTTP 429: {limit}", "credentials"),
    (Cause.CRASHED, "ended with signal 9", "ended with signal 9", "records: on stdout of serve, on stderr of"),
    (Cause.STOPPED, "", "the actor is stopping", "ask again"),
]


@pytest.mark.parametrize(("cause", "detail", "what", "advice"), ENDS)
@pytest.mark.parametrize("door", Door)
def test_an_end_is_explained_in_one_line_with_its_budget_and_what_to_do(
    door: Door, cause: Cause, detail: str, what: str, advice: str
) -> None:
    told, hint = explain(door, BUDGET, SessionEnd(cause, detail=detail))
    assert told.startswith(f"{door}: the session ")
    assert "\n" not in told + hint
    assert all(words in told for words in (what, "cut off", "pushed"))
    assert advice in hint
