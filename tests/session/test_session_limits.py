"""Every limit of a session, overrun by one that does not hold itself to any."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.price import Price, Prices, Usage
from foundry_implementation_actor.domain.run import Budget, Cause, SessionEnd
from foundry_implementation_actor.engines.claude_code import ClaudeCode
from support.claude import claude_binary
from support.model import ScriptedModel, Turn, turn, use
from support.model import text as words
from support.processes import ends
from support.sessions import BUDGET, Stage

MB = 1024 * 1024
DOLLAR_A_TOKEN = Price(1e6, 1e6, 1e6, 1e6, 1e6)
PYTHON = f"exec {sys.executable} -I -S -c"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def message(name: str, usage: dict[str, Any], text: str = "x", **fields: Any) -> dict[str, str]:
    """A step that puts one piece of a message of the model on the stream."""
    block = {"type": "text", "text": text}
    said = {"id": name, "model": "tiny", "content": [block], "usage": usage}
    return {"raw": json.dumps({"type": "assistant", "message": said, **fields}) + "\n"}


def priced(most: float) -> Budget:
    return replace(BUDGET, cost_usd=most, prices=Prices({"tiny": DOLLAR_A_TOKEN}))


def left_behind(stage: Stage) -> bool:
    return not ends(int((stage.base / "pid").read_text()), 0)


# --- money -----------------------------------------------------------------------------------------


def test_money_is_counted_by_the_actor_when_the_engine_does_not(stage: Stage) -> None:
    end = stage.play(message("m1", {"input_tokens": 6}), message("m2", {"input_tokens": 5}), budget=priced(10))
    assert (end.cause, end.cost_usd, end.cost_estimated) == (Cause.MONEY, 11, False)
    [result] = [record for record in stage.records if record["event"] == "result"]
    assert (result["cost_usd"], result["cost_estimated"], result["input_tokens"]) == (11, False, 11)


def test_money_that_is_spent_in_a_sub_agent_counts_and_its_turns_do_not(stage: Stage) -> None:
    nested = [message(f"m{n}", {"input_tokens": 4}, parent_tool_use_id="toolu_1") for n in range(3)]
    end = stage.play(*nested, {"silence": True}, budget=replace(priced(10), turns=1))
    assert (end.cause, end.cost_usd, end.turns) == (Cause.MONEY, 12, 0)


def test_a_message_that_comes_in_several_pieces_is_paid_for_once(stage: Stage) -> None:
    piece = message("m1", {"input_tokens": 6, "output_tokens": 1})
    end = stage.play(piece, piece, piece, {"result": {"text": "done"}}, budget=priced(10))
    assert (end.cause, end.cost_usd) == (Cause.FINISHED, 7)


def test_what_is_cached_is_paid_for_at_its_own_prices(stage: Stage) -> None:
    usage = {
        "input_tokens": 1, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2},
    }  # fmt: skip
    prices = Prices({"tiny": Price(1e6, 1e6, cache_write=10e6, cache_write_1h=100e6, cache_read=1000e6)})
    end = stage.play(message("m1", usage), budget=replace(BUDGET, prices=prices))
    assert end.cost_usd == 1 + 3 * 10 + 2 * 100 + 4 * 1000


def test_an_output_that_is_not_yet_stated_is_counted_by_its_length_and_is_an_estimate(stage: Stage) -> None:
    end = stage.play(message("m1", {"input_tokens": 1, "output_tokens": 1}, "word" * 20), budget=priced(10))
    assert (end.cause, end.cost_usd, end.cost_estimated) == (Cause.MONEY, 21, True)


def test_a_model_without_a_price_costs_as_much_as_the_dearest_and_is_an_estimate(stage: Stage) -> None:
    prices = Prices({"small": Price(1e6, 1, 1, 1, 1), "large": Price(3e6, 1, 1, 1, 1)})
    end = stage.play(message("m1", {"input_tokens": 4}), budget=replace(BUDGET, cost_usd=10, prices=prices))
    assert (end.cause, end.cost_estimated) == (Cause.MONEY, True)
    assert end.cost_usd == pytest.approx(12)


def test_the_sessions_own_total_counts_when_it_is_larger(stage: Stage) -> None:
    spent = message("m1", {"input_tokens": 4}, "word" * 20)
    for reported, cost in ((7, 7), (3, 4)):
        end = stage.play(spent, {"result": {"cost_usd": reported}}, budget=priced(100))
        assert (end.cause, end.cost_usd, end.cost_estimated) == (Cause.FINISHED, cost, False)


def test_a_session_that_is_done_is_not_undone_by_what_it_cost(stage: Stage) -> None:
    end = stage.play(message("m1", {"input_tokens": 4}), {"result": {"cost_usd": 50, "text": "done"}}, budget=priced(9))
    assert (end.cause, end.text, end.cost_usd) == (Cause.FINISHED, "done", 50)


def test_absurd_counts_of_tokens_are_tolerated(stage: Stage) -> None:
    odd: list[dict[str, Any]] = [
        {"input_tokens": 10**400},
        {"output_tokens": -5},
        {"cache_read_input_tokens": "many"},
        {"cache_creation": 3},
    ]
    end = stage.play(*(message(f"m{n}", usage) for n, usage in enumerate(odd)))
    assert end.cause is Cause.FINISHED


# --- disk ------------------------------------------------------------------------------------------


ROOM = replace(BUDGET, disk_bytes=8 * MB, disk_files=300)
HELD = "import os, signal\nf = open('b', 'wb'); os.unlink('b'); f.write(b'x' * 20_000_000); signal.pause()"
DEEP = (
    "import os, signal\nfor _ in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    "open('b', 'wb').write(b'x' * 20_000_000); signal.pause()"
)
FILLS: dict[str, tuple[Cause, str]] = {
    "one file of the tree": (Cause.DISK, "head -c 20000000 /dev/zero > big; sleep 600"),
    "its home": (Cause.DISK, "head -c 20000000 /dev/zero > ~/big; sleep 600"),
    "its temporary directory": (Cause.DISK, "head -c 20000000 /dev/zero > $TMPDIR/big; sleep 600"),
    "its git directory": (Cause.DISK, "mkdir .git; head -c 20000000 /dev/zero > .git/big; sleep 600"),
    "a deleted file that is held open": (Cause.DISK, f'{PYTHON} "{HELD}"'),
    "many files": (Cause.FILES, "mkdir d; cd d; for i in $(seq 400); do : > $i; done; sleep 600"),
    "many directories": (Cause.FILES, "seq 400 | sed s/^/d/ | xargs mkdir; sleep 600"),
    "far below where paths are too long": (Cause.DISK, f'{PYTHON} "{DEEP}"'),
}


@pytest.mark.parametrize("where", FILLS)
def test_a_session_that_fills_the_disk_is_ended(stage: Stage, where: str) -> None:
    cause, line = FILLS[where]
    end = stage.play({"shell": line}, budget=ROOM)
    assert end.cause is cause
    assert "more on disk than at its start" in end.detail


def test_what_was_there_before_and_what_takes_no_room_does_not_count(stage: Stage) -> None:
    (stage.tree / "before").write_bytes(b"x" * 20 * MB)
    links = "head -c 6000000 /dev/zero > one; for i in 1 2 3; do ln one $i; done; ln -s / root; ln -s . circle"
    end = stage.play({"shell": f"truncate -s 1T hole; {links}; sleep 3"}, budget=ROOM)
    assert end.cause is Cause.FINISHED


# --- processes and memory --------------------------------------------------------------------------


def test_a_session_that_starts_too_many_processes_is_ended_with_all_of_them(stage: Stage) -> None:
    line = f"for i in $(seq 40); do setsid sleep 600 & done; echo $! > {stage.base}/pid; wait"
    end = stage.play({"shell": line}, budget=replace(BUDGET, processes=20))
    assert (end.cause, end.detail) == (Cause.PROCESSES, "had more than 20 processes at once")
    assert not left_behind(stage)


def test_a_session_that_takes_too_much_memory_is_ended(stage: Stage) -> None:
    line = f"{PYTHON} \"kept = b'x' * 200_000_000; import signal; signal.pause()\""
    end = stage.play({"shell": line}, budget=replace(BUDGET, memory_bytes=100 * MB))
    assert (end.cause, end.detail) == (Cause.MEMORY, "held more than 104,857,600 bytes of memory")


# --- the real command line -------------------------------------------------------------------------


SPIN = "for i in $(seq 40); do sleep 600 & done; wait"
REAL: dict[str, tuple[Cause, Budget, Turn]] = {
    "clock": (Cause.CLOCK, replace(BUDGET, clock_s=2), use("Bash", command="sleep 600")),
    "output": (Cause.OUTPUT, replace(BUDGET, output_bytes=8_000), turn(words("x" * 9_000))),
    "processes": (Cause.PROCESSES, replace(BUDGET, processes=20), use("Bash", command=SPIN)),
}


def drive(stage: Stage, model: ScriptedModel, budget: Budget, **order: Any) -> SessionEnd:
    credentials = {"ANTHROPIC_API_KEY": "the-key", "ANTHROPIC_BASE_URL": model.url}
    return stage.drive(ClaudeCode(str(claude_binary())), stage.order(credentials=credentials, **order), budget)


@pytest.mark.parametrize("limit", REAL)
def test_the_real_command_line_is_held_to(stage: Stage, limit: str) -> None:
    cause, budget, first = REAL[limit]
    with ScriptedModel([first]) as model:
        assert drive(stage, model, budget).cause is cause


@pytest.mark.parametrize("told", [0.0, 0.5])
def test_the_real_command_line_is_held_to_its_money_whether_it_is_told_of_it_or_not(stage: Stage, told: float) -> None:
    """A turn costs 100,000 tokens of input: half a dollar by the list price of the model that it names."""
    steps = [turn(words("again"), use("Bash", command="true").blocks[0], input_tokens=100_000) for _ in range(5)]
    with ScriptedModel(steps) as model:
        end = drive(stage, model, replace(BUDGET, cost_usd=100 if told else 0.9), cost_usd=told)
    assert end.cause is Cause.MONEY
    assert end.cost_usd == pytest.approx(told or 1.0, abs=0.1)
    assert len(model.asked) <= 3


CACHED = {"cache_creation_input_tokens": 2000, "cache_read_input_tokens": 4000}


def test_the_actors_count_is_that_of_the_command_line_for_the_model_that_it_names(stage: Stage) -> None:
    cost = Turn((words("done"),), cost={**CACHED, "input_tokens": 1000, "output_tokens": 1})
    with ScriptedModel([cost]) as model:
        end = drive(stage, model, BUDGET)
    [known] = [record["model"] for record in stage.recorded("session-start")]
    price, is_known = Prices().of(known)
    assert is_known, known
    usd = price.cost(Usage(1000, 1, cache_write=2000, cache_read=4000))
    assert end.cost_usd == pytest.approx(usd)
    assert not end.cost_estimated
