"""One session under watch: real processes, each misbehaving in one way."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import LINE_LIMIT
from foundry_implementation_actor.domain.run import Cause
from foundry_implementation_actor.engines.claude_code import ClaudeCode
from foundry_implementation_actor.system.process import Stop
from support.sessions import BUDGET, Stage

IMPATIENT = replace(BUDGET, silence_s=2)
SHORT = replace(BUDGET, clock_s=2)
MB = 1024 * 1024


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def background(line: str) -> dict[str, Any]:
    """A step that leaves this shell line running and its pid in the file `pid`."""
    return {"shell": f"{line} & echo $! > pid"}


def left_behind(stage: Stage) -> bool:
    return alive(int((stage.tree / "pid").read_text()))


def test_a_session_that_works_and_ends_is_finished(stage: Stage) -> None:
    costs = {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 20}
    end = stage.play({"write": {"path": "a/b", "content": "x\n"}}, {"result": {"text": "done", **costs}})
    assert (end.cause, end.text, end.turns, end.detail) == (Cause.FINISHED, "done", 1, "")
    assert (end.cost_usd, end.input_tokens, end.output_tokens) == (0.25, 10, 20)
    assert (stage.tree / "a/b").read_bytes() == b"x\n"
    assert [{key: record[key] for key in costs} for record in stage.records if record["event"] == "result"] == [costs]


def test_the_transcript_is_recorded_in_order(stage: Stage) -> None:
    stage.play({"say": "I begin"}, {"shell": "echo out; exit 3"}, {"say": "I end"})
    assert [record["step"] for record in stage.records if record["event"] == "event"] == [
        "session-start", "session-text", "session-tool", "session-tool-result", "session-text",
        "session-result", "session-end",
    ]  # fmt: skip
    assert stage.recorded("session-tool-result")[0]["text"] == "out\n\nexit code 3"


def test_a_session_that_falls_silent_is_ended_and_nothing_of_it_lives_on(stage: Stage) -> None:
    end = stage.play(background("sleep 600"), {"silence": True}, budget=IMPATIENT)
    assert (end.cause, end.detail) == (Cause.SILENT, "said nothing for 2 seconds")
    assert not left_behind(stage)


def test_noise_on_stderr_is_no_sign_of_life(stage: Stage) -> None:
    noise = "while :; do echo noise > /proc/$PPID/fd/2; done"
    assert stage.play({"shell": noise}, budget=IMPATIENT).cause is Cause.SILENT


def test_a_session_that_hangs_after_its_result_is_finished_after_the_grace(stage: Stage) -> None:
    started = time.monotonic()
    end = stage.play({"say": "done"}, {"hang_after_result": True}, grace_s=0.2)
    assert (end.cause, end.text) == (Cause.FINISHED, "done")
    assert time.monotonic() - started < 10


def test_chatter_after_the_result_does_not_lengthen_the_grace(stage: Stage) -> None:
    chatter = 'while :; do echo "[]" > /proc/$PPID/fd/1; done'
    end = stage.play(background(chatter), {"hang_after_result": True}, grace_s=0.2)
    assert end.cause is Cause.FINISHED
    assert not left_behind(stage)


def test_an_error_result_stays_an_error_when_the_process_hangs(stage: Stage) -> None:
    broken = {"result": {"is_error": True, "api_error_status": 529, "text": "overloaded"}}
    end = stage.play(broken, {"raw": "\n"}, {"silence": True}, grace_s=0.2)
    assert (end.cause, end.detail) == (Cause.PROVIDER, "HTTP 529: overloaded")


def test_the_clock_ends_a_session_that_goes_on_and_on(stage: Stage) -> None:
    tick = 'while :; do echo "{}" > /proc/$PPID/fd/1; done'
    end = stage.play({"say": "working"}, {"shell": tick}, budget=SHORT)
    assert (end.cause, end.detail, end.text) == (Cause.CLOCK, "ran for 2 seconds", "working")


def test_the_actor_counts_turns_when_the_engine_does_not(stage: Stage) -> None:
    end = stage.play(*[{"say": str(n)} for n in range(1, 6)], budget=replace(BUDGET, turns=3))
    assert (end.cause, end.turns, end.detail) == (Cause.TURNS, 4, "began turn 4")
    assert len(stage.recorded("session-text")) == 4


def test_a_session_that_uses_exactly_its_turns_is_finished(stage: Stage) -> None:
    end = stage.play(*[{"say": str(n)} for n in range(1, 4)], budget=replace(BUDGET, turns=3))
    assert (end.cause, end.turns) == (Cause.FINISHED, 3)


def test_a_turn_that_comes_in_several_pieces_counts_once(stage: Stage) -> None:
    message = {"id": "msg_same", "content": [{"type": "text", "text": "piece"}]}
    piece = json.dumps({"type": "assistant", "message": message}) + "\n"
    end = stage.play({"raw": piece * 5}, budget=replace(BUDGET, turns=1))
    assert (end.cause, end.turns) == (Cause.FINISHED, 1)


def test_the_engines_own_turn_limit_is_the_same_end(stage: Stage) -> None:
    end = stage.play({"result": {"subtype": "error_max_turns", "is_error": True, "turns": 61}})
    assert (end.cause, end.turns) == (Cause.TURNS, 61)


def test_success_with_an_error_inside_is_the_providers_failure(stage: Stage) -> None:
    end = stage.play({"result": {"subtype": "success", "is_error": True, "api_error_status": 429, "text": "limit"}})
    assert (end.cause, end.detail) == (Cause.PROVIDER, "HTTP 429: limit")


def test_a_result_and_then_an_exit_code_is_no_success(stage: Stage) -> None:
    end = stage.play({"result": {"text": "fine"}}, {"stderr": "then it broke\n"}, {"exit": 7})
    assert end.cause is Cause.CRASHED
    assert "exit code 7" in end.detail
    assert "then it broke" in end.detail


def test_no_result_at_all_is_a_crash(stage: Stage) -> None:
    end = stage.play({"say": "soon"}, {"exit": 0})
    assert (end.cause, end.text) == (Cause.CRASHED, "soon")
    assert end.detail == "ended with exit code 0 and without a result"


def test_a_session_killed_from_outside_is_a_crash(stage: Stage) -> None:
    end = stage.play({"shell": "kill -9 $PPID"})
    assert (end.cause, end.detail) == (Cause.CRASHED, "ended with signal 9 and without a result")


def test_of_several_results_the_last_counts(stage: Stage) -> None:
    first, last = {"result": {"text": "first", "cost_usd": 1}}, {"result": {"text": "last", "cost_usd": 2}}
    end = stage.play(first, {"say": "the background task came back"}, last)
    assert (end.cause, end.text, end.cost_usd) == (Cause.FINISHED, "last", 2)


def test_work_that_begins_again_after_a_result_gets_more_than_the_grace(stage: Stage) -> None:
    again = {"say": "again"}
    end = stage.play(
        {"result": {"text": "first"}}, again, {"shell": "sleep 0.8"}, {"result": {"text": "last"}}, grace_s=0.5
    )
    assert end.text == "last"


def test_a_stop_ends_the_session_at_once(stage: Stage) -> None:
    stop = Stop()
    stage.on_record = lambda record: stop.set() if record.get("step") == "session-tool" else None
    end = stage.play({"shell": "sleep 600"}, stop=stop)
    assert end.cause is Cause.STOPPED


def test_stdin_is_never_inherited(stage: Stage) -> None:
    """The test's own stdin is an open pipe that never ends; a session that read it would hang."""
    reading, writing = os.pipe()
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        end = stage.play({"shell": "cat; echo end of input"}, budget=replace(BUDGET, silence_s=5))
    finally:
        os.dup2(before, 0)
        for descriptor in (before, reading, writing):
            os.close(descriptor)
    assert end.finished
    assert stage.recorded("session-tool-result")[0]["text"] == "end of input\n"


ODD_LINES = {
    "blank": b"\n\n  \n",
    "carriage returns": b'{"type":"system","subtype":"status"}\r\n\r\n',
    "a list": b"[]\n",
    "null": b"null\n",
    "a number": b"12\n",
    "half": b'{"type":"assist\n',
    "invalid UTF-8": b'\xff\xfe{"type":"assistant"}\n',
    "NUL": b"\0\0\n",
    "wrong shapes": b'{"type":"assistant","message":[1]}\n{"type":"user","message":{"content":[null,3]}}\n',
    "two megabytes": b'{"type":"user","message":{"content":[{"type":"tool_result","content":"'
    + b"y" * 2 * MB
    + b'"}]}}\n',
    "deep": b'{"a":' * 100_000 + b"\n",
}


@pytest.mark.parametrize("name", ODD_LINES)
def test_an_odd_line_is_tolerated(stage: Stage, name: str) -> None:
    (stage.base / "line").write_bytes(ODD_LINES[name])
    end = stage.play({"shell": f"cat {stage.base}/line > /proc/$PPID/fd/1"}, {"say": "still here"})
    assert (end.cause, end.text) == (Cause.FINISHED, "still here")
    assert all(len(json.dumps(record, ensure_ascii=False).encode()) <= LINE_LIMIT for record in stage.records)


def test_a_line_of_a_hundred_megabytes_is_dropped_and_takes_no_memory(stage: Stage) -> None:
    tracemalloc.start()
    try:
        end = stage.play({"flood": 100 * MB}, {"say": "still here"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (end.cause, end.text) == (Cause.FINISHED, "still here")
    assert peak < 32 * MB
    note = next(n for n in stage.recorded("session-note") if n["kind"] == "line-too-long")
    assert note["text"].startswith(f"{100 * MB - 65536} bytes of this line were dropped: xxx")


def test_output_without_end_is_ended_at_the_limit(stage: Stage) -> None:
    end = stage.play({"flood": 50 * MB}, {"silence": True}, budget=replace(BUDGET, output_bytes=10 * MB))
    assert (end.cause, end.detail) == (Cause.OUTPUT, "wrote more than 10,485,760 bytes")


def test_a_child_that_keeps_stdout_open_does_not_hold_the_end_up(stage: Stage) -> None:
    started = time.monotonic()
    end = stage.play(background("sleep 600 > /proc/$PPID/fd/1"))
    assert end.finished
    assert not left_behind(stage)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("line", ["sleep 600", "setsid sleep 600", "(setsid sh -c 'sleep 600' &); sleep 600"])
def test_nothing_that_a_session_started_survives_it(stage: Stage, line: str) -> None:
    """What did escape would become this process's child, and the guard after each test would name it."""
    assert stage.play(background(line)).finished
    assert not left_behind(stage)


def test_a_background_writer_is_dead_when_the_session_is_over(stage: Stage) -> None:
    end = stage.play(background("while :; do echo x >> log; done"), {"shell": "until [ -s log ]; do :; done"})
    assert end.finished
    assert not left_behind(stage)


def pretended_claude(stage: Stage, script: str) -> ClaudeCode:
    """The claude engine with a shell script in the place of the CLI."""
    program = stage.base / "claude"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return ClaudeCode(str(program))


def test_a_secret_that_a_session_prints_is_hidden_before_anything_is_cut(stage: Stage) -> None:
    """The secret lies across the place where a long text is cut."""
    secret = "s3cret-" + "k" * 60
    block = {"type": "tool_result", "content": "x" * 2000 + secret + "x" * 9000}
    (stage.base / "home/line").write_text(json.dumps({"type": "user", "message": {"content": [block]}}))
    engine = pretended_claude(stage, f'cat "$HOME/line"; echo {secret} >&2')
    end = stage.drive(engine, stage.order(credentials={"ANTHROPIC_API_KEY": secret}))
    assert end.cause is Cause.CRASHED
    assert len(stage.recorded("session-tool-result")) == 1
    assert "kkkk" not in json.dumps(stage.records)


def test_the_key_can_be_read_once_and_stands_in_no_environment(stage: Stage) -> None:
    read = 'cat "/proc/self/fd/$CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR" > "$HOME/first"'
    look = 'env > "$HOME/env"; cat /proc/$PPID/environ >> "$HOME/env"'
    engine = pretended_claude(stage, f"{read}; {read.replace('first', 'again')}; {look}")
    stage.drive(engine, stage.order(credentials={"ANTHROPIC_API_KEY": "the-key", "ANTHROPIC_BASE_URL": "http://x"}))
    home = stage.base / "home"
    assert [(home / name).read_text() for name in ("first", "again")] == ["the-key", ""]
    assert "the-key" not in (home / "env").read_text()
    assert "ANTHROPIC_BASE_URL=http://x" in (home / "env").read_text()


def test_a_missing_program_is_an_unfit_host(stage: Stage) -> None:
    with pytest.raises(ActorError, match="no-such-claude") as raised:
        stage.drive(ClaudeCode("no-such-claude"), stage.order())
    assert raised.value.code is Code.UNFIT
