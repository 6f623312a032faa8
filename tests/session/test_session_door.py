"""What a session asks of the model counts at the actor's own door, whoever of it asks and whatever its stream says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.price import Prices, Usage
from foundry_implementation_actor.domain.run import Budget, Cause, SessionEnd
from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.http import ModelRefusedError
from foundry_implementation_actor.egress.meter import Charge, Meter
from foundry_implementation_actor.egress.model import Model
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.engines.claude_code import ClaudeCode
from foundry_implementation_actor.engines.port import Engine, Result
from foundry_implementation_actor.engines.script import Script, ScriptedSession
from foundry_implementation_actor.engines.scripted import Scripted
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.session.drive import drive
from foundry_implementation_actor.session.enclosure import Enclosure, Held, Places
from foundry_implementation_actor.session.tally import Tally
from foundry_implementation_actor.system.journal import Journal
from support.claude import claude_binary
from support.model import Request, ScriptedModel, Turn, hang, mentions, say, use
from support.sessions import BUDGET, Stage

OPUS = "claude-opus-4-5"
# What a session's shell can ask by itself: 100,000 tokens of input, half a dollar by the price of that model.
MESSAGES = [{"role": "user", "content": "alone"}]
BODY = {"model": OPUS, "max_tokens": 1_000, "tools": [{"name": "x"}], "messages": MESSAGES}
ASK = (
    f"curl -s -m 20 -w '%{{http_code}}\\n' -o answer $ANTHROPIC_BASE_URL/v1/messages -H \"x-api-key: $WORD\" "
    f"-H 'content-type: application/json' -d '{json.dumps(BODY)}' >> asked"
)
DEAR = Turn(say("ok").blocks, cost={"input_tokens": 100_000})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@contextmanager
def held(stage: Stage, model: ScriptedModel, budget: Budget, variable: str) -> Iterator[Held]:
    """A session's enclosure without a sandbox, so that the test sees what its shell does."""
    places = Places(stage.tree, (stage.tree,), stage.base / "home", stage.base / "tmp", stage.base)
    service = Model(model.url, variable, "the-real-login")
    journal = Journal(sink=lambda line, _: stage.records.append(json.loads(line)))
    with Enclosure(choose("none"), Allowed(), Upstream(), service, ()).around(places, journal, budget=budget) as found:
        yield found


def run(
    stage: Stage, engine: Engine, model: ScriptedModel, budget: Budget, variable: str = "ANTHROPIC_API_KEY"
) -> SessionEnd:
    """Drive a session; its shell has the word of its run at hand, as if it had read its program's memory."""
    with held(stage, model, budget, variable) as session:
        given = session.credentials
        word = {"WORD": given[variable], "ANTHROPIC_BASE_URL": given["ANTHROPIC_BASE_URL"]}
        order = stage.order(credentials=given, surroundings={**session.environment, **word})
        start, places = session.started, session.watched
        return drive(engine, order, budget, session.journal, start=start, places=places, meter=session.meter)


def real(stage: Stage, model: ScriptedModel, budget: Budget = BUDGET, **how: str) -> SessionEnd:
    return run(stage, ClaudeCode(str(claude_binary())), model, budget, **how)


def play(stage: Stage, model: ScriptedModel, *steps: dict[str, Any], budget: Budget = BUDGET) -> SessionEnd:
    return run(stage, Scripted(Script((ScriptedSession(steps),))), model, budget)


def answered(stage: Stage) -> list[str]:
    """The statuses that the shell's own requests got."""
    return (stage.tree / "asked").read_text().split()


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_the_real_command_line_is_counted_once_and_asks_for_nothing_that_is_refused(
    stage: Stage, variable: str
) -> None:
    cost = {"input_tokens": 1000, "output_tokens": 50, "cache_creation_input_tokens": 2000}
    steps = [Turn(turned.blocks, cost=cost) for turned in (use("Bash", command="true"), say("done"))]
    with ScriptedModel(steps) as model:
        end = real(stage, model, variable=variable)
    [named] = [record["model"] for record in stage.recorded("session-start")]
    usd = Prices().of(named)[0].cost(Usage(2000, 100, cache_write=4000))
    assert (end.cause, end.cost_estimated, end.input_tokens, end.output_tokens) == (Cause.FINISHED, False, 6000, 100)
    assert end.cost_usd == pytest.approx(usd)
    assert not stage.recorded("egress-refused")
    assert {request.headers["accept-encoding"] for request in model.asked} == {"identity"}


def test_what_the_shell_of_the_real_command_line_asks_by_itself_counts_too(stage: Stage) -> None:
    with ScriptedModel([use("Bash", command=ASK), say("done")]).route(mentions("alone"), [DEAR]) as model:
        end = real(stage, model)
    assert (end.cause, answered(stage), end.cost_estimated) == (Cause.FINISHED, ["200"], False)
    assert end.cost_usd == pytest.approx(0.5 + 2 * Prices().of(OPUS)[0].cost(Usage(1000, 50)), abs=0.01)
    [result] = [record for record in stage.records if record["event"] == "result"]
    assert result["cost_usd"] == end.cost_usd


def test_a_session_that_asks_by_itself_is_ended_at_its_limit_and_asks_no_more(stage: Stage) -> None:
    many = f"for i in 1 2 3 4 5 6; do {ASK}; done; sleep 600"
    with ScriptedModel().route(mentions("alone"), [], then=DEAR) as model:
        end = play(stage, model, {"shell": many}, budget=replace(BUDGET, cost_usd=0.9))
    assert (end.cause, len(model.asked)) == (Cause.MONEY, 2)
    assert end.cost_usd == pytest.approx(1.0, abs=0.01)
    assert end.detail == f"cost about {end.cost_usd:.2f} US dollars"
    assert answered(stage)[:2] == ["200", "200"]
    assert set(answered(stage)[2:]) <= {"402"}


def test_the_real_command_line_that_goes_over_its_limit_ends_for_the_money(stage: Stage) -> None:
    steps = [Turn(use("Bash", command="true").blocks, cost={"input_tokens": 100_000}) for _ in range(5)]
    with ScriptedModel(steps) as model:
        end = real(stage, model, replace(BUDGET, cost_usd=0.9))
    assert (end.cause, len(model.asked)) == (Cause.MONEY, 2)
    assert end.cost_usd == pytest.approx(1.0, abs=0.1)


def test_the_real_command_line_says_in_words_what_the_door_refuses(stage: Stage) -> None:
    """Here nothing but the door knows of the limit."""
    steps = [Turn(use("Bash", command="true").blocks, cost={"input_tokens": 200_000}) for _ in range(5)]
    with (
        ScriptedModel(steps) as model,
        held(stage, model, replace(BUDGET, cost_usd=0.9), "ANTHROPIC_API_KEY") as session,
    ):
        order = stage.order(credentials=session.credentials)
        end = drive(ClaudeCode(str(claude_binary())), order, BUDGET, session.journal, start=session.started)
    assert (end.cause, len(model.asked)) == (Cause.PROVIDER, 1)
    assert "HTTP 402" in end.detail
    assert "this session has used up its 0.9 US dollars (MAX_COST_USD)" in end.detail


def test_messages_with_one_constant_id_are_each_counted(stage: Stage) -> None:
    steps = [Turn(use("Bash", command=f"echo {n}").blocks, cost={"input_tokens": 100_000}) for n in range(5)]
    with ScriptedModel(steps) as model:
        model.message_ids = itertools.count(1, 0)
        end = real(stage, model, replace(BUDGET, cost_usd=1.2))
    assert (end.cause, len(model.asked)) == (Cause.MONEY, 3)
    assert end.cost_usd == pytest.approx(1.5, abs=0.1)


def test_what_a_session_leaves_unanswered_counts_as_much_as_it_can_have_cost(stage: Stage) -> None:
    leaves = ASK.replace("-m 20", "-m 0.3")
    with ScriptedModel().route(mentions("alone"), [hang()]) as model:
        end = play(stage, model, {"shell": leaves})
    most = Prices().of(OPUS)[0].cost(Usage(output=1_000, cache_write_1h=len(json.dumps(BODY)) // 3))
    assert (end.cause, end.cost_estimated, len(model.asked)) == (Cause.FINISHED, True, 1)
    assert end.cost_usd == pytest.approx(most)


def test_what_is_under_way_when_a_session_is_done_counts_although_it_is_never_answered(stage: Stage) -> None:
    with ScriptedModel() as model:
        asked = stage.base / "asked-it"

        def never(_: Request) -> Turn:
            asked.touch()
            return hang()

        model.route(mentions("alone"), [never])
        end = play(stage, model, {"shell": f"({ASK}) & until [ -e {asked} ]; do :; done"}, {"result": {"text": "done"}})
    assert (end.cause, end.text, end.cost_estimated) == (Cause.FINISHED, "done", True)
    assert end.cost_usd > Prices().of(OPUS)[0].cost(Usage(output=1_000))


def test_the_larger_count_holds_and_not_both(stage: Stage) -> None:
    """The stream says one thing, the door has seen another."""
    with ScriptedModel().route(mentions("alone"), [], then=DEAR) as model:
        more = play(stage, model, {"shell": ASK}, {"result": {"cost_usd": 7.0, "input_tokens": 9}})
        less = play(stage, model, {"shell": ASK}, {"result": {"cost_usd": 0.1, "output_tokens": 9_000}})
    assert (more.cost_usd, more.input_tokens, more.output_tokens) == (7.0, 100_000, 50)
    assert less.cost_usd == pytest.approx(0.50125)
    assert (less.input_tokens, less.output_tokens) == (100_000, 9_000)


def test_a_program_that_ends_because_the_door_refuses_ended_for_the_money() -> None:
    meter = Meter(most_usd=1.0)
    meter.admit(Charge(1.0, 1.0, 1.0))
    tally = Tally(meter=meter)
    tally.count(Result("provider", "HTTP 402: used up"))
    assert tally.closed(1).cause is Cause.PROVIDER
    with pytest.raises(ModelRefusedError):
        meter.check_rest()
    assert tally.closed(1).cause is Cause.MONEY
