"""Records: one line of JSON each, bounded, redacted, with the ids of their run."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.event import LINE_LIMIT
from foundry_implementation_actor.system.journal import CORRELATION, Journal, new_correlation_id
from foundry_implementation_actor.system.secrets import redactor

SECRET = "s3cret-0123456789"
ANY_TEXT = st.text(st.characters(codec=None), max_size=200)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ANY_TEXT, inner, max_size=5),
    max_leaves=20,
)


class Written:
    """A sink that keeps the lines and what came with them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.meta: list[Mapping[str, str]] = []

    def __call__(self, line: str, meta: Mapping[str, str]) -> None:
        self.lines.append(line)
        self.meta.append(meta)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def journal() -> tuple[Journal, Written]:
    sink = Written()
    return Journal(sink, redactor([SECRET])).bound(task_id="TASK-1", correlation_id="c" * 32), sink


def test_a_step_is_two_records_with_its_fields_and_its_duration() -> None:
    records, sink = journal()
    with records.step("push", branch="impl/x"):
        pass
    start, end = sink.records
    ids = {"correlation_id": "c" * 32, "task_id": "TASK-1"}
    assert start == {"level": "info", "event": "step", "step": "push", "phase": "start", "branch": "impl/x", **ids}
    assert (end["phase"], end["error"], end["level"]) == ("ok", None, "info")
    assert isinstance(end["duration_ms"], int)


@pytest.mark.parametrize("error", [ValueError("it broke"), KeyboardInterrupt(), RuntimeError("")])
def test_a_step_that_fails_says_how_and_lets_the_error_through(error: BaseException) -> None:
    records, sink = journal()
    with pytest.raises(type(error)), records.step("push"):
        raise error
    end = sink.records[-1]
    assert (end["phase"], end["level"], end["error"]) == ("failed", "error", str(error) or type(error).__name__)


def test_a_result_says_what_a_session_cost() -> None:
    records, sink = journal()
    records.result(cost_usd=0.5, input_tokens=1, output_tokens=2)
    [record] = sink.records
    assert {key: record[key] for key in ("event", "cost_usd", "input_tokens", "output_tokens")} == {
        "event": "result", "cost_usd": 0.5, "input_tokens": 1, "output_tokens": 2,
    }  # fmt: skip


@settings(deadline=None)
@given(fields=st.dictionaries(st.sampled_from(["a", "b", "text", "c\ud800"]), ANY_JSON))
def test_any_record_is_one_line_of_utf_8_with_its_ids(fields: dict[str, Any]) -> None:
    records, sink = journal()
    records.event("thing", more=fields)
    [line] = sink.lines
    assert "\n" not in line
    assert len(line.encode("utf-8")) <= LINE_LIMIT
    record = json.loads(line)
    assert (record["step"], record["task_id"], record["correlation_id"]) == ("thing", "TASK-1", "c" * 32)
    assert sink.meta == [{"task_id": "TASK-1", "correlation_id": "c" * 32}]


HUGE: dict[str, Any] = {
    "a megabyte": "x" * 1_000_000,
    "a megabyte that JSON triples": "\x01" * 1_000_000,
    "a megabyte of wide characters": "\U0001f600" * 250_000,
    "lone surrogates": "\ud800" * 100_000,
    "very many short texts": ["x"] * 100_000,
    "very many numbers": list(range(100_000)),
    "very many keys": {str(number): number for number in range(100_000)},
    "very long keys": {"k" * 100_000 + str(number): 1 for number in range(20)},
    "many long texts": ["y" * 30_000] * 50,
}


@pytest.mark.parametrize("what", HUGE)
def test_a_record_of_any_size_stays_below_the_limit_and_keeps_its_ids(what: str) -> None:
    records, sink = journal()
    records.event("thing", level="warn", value=HUGE[what])
    [line] = sink.lines
    assert len(line.encode()) <= LINE_LIMIT
    record = json.loads(line)
    kept = ("level", "event", "step", "task_id", "correlation_id")
    assert [record[key] for key in kept] == ["warn", "event", "thing", "TASK-1", "c" * 32]
    assert "dropped]" in line


def test_an_error_of_a_megabyte_is_clipped_in_its_record() -> None:
    records, sink = journal()
    with pytest.raises(ValueError, match="head"), records.step("push"):
        raise ValueError("head " + "x" * 1_000_000 + " tail")
    end = sink.records[-1]
    assert len(sink.lines[-1].encode()) <= LINE_LIMIT
    assert end["phase"] == "failed"
    assert end["error"].startswith("head ")
    assert end["error"].endswith(" tail")
    assert "bytes dropped" in end["error"]


@settings(deadline=None)
@given(before=st.text(max_size=20), depth=st.integers(0, 5))
def test_a_secret_is_hidden_at_any_depth_and_in_keys(before: str, depth: int) -> None:
    records, sink = journal()
    value: Any = before + SECRET
    for _ in range(depth):
        value = [{SECRET: value}]
    records.event("thing", value=value)
    assert SECRET not in sink.lines[0]


def test_the_ids_of_the_request_at_hand_are_taken_where_a_journal_has_none() -> None:
    sink = Written()
    token = CORRELATION.set("d" * 32)
    try:
        Journal(sink).event("thing")
    finally:
        CORRELATION.reset(token)
    assert sink.meta == [{"correlation_id": "d" * 32}]


def test_a_new_id_has_the_form_of_a_trace_id() -> None:
    ids = {new_correlation_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(text) == 32 and int(text, 16) for text in ids)


def test_records_reach_logging_with_their_ids_as_attributes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "foundry_implementation_actor"):
        Journal().bound(task_id="T", correlation_id="e" * 32).event("thing", text="100 % {sure} %s")
    [record] = caplog.records
    assert json.loads(record.getMessage())["text"] == "100 % {sure} %s"
    assert (vars(record)["task_id"], vars(record)["correlation_id"]) == ("T", "e" * 32)
