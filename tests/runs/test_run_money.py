"""What a session's shell asks of the model by itself counts in the whole run: limit, record and commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.error import ActorError
from support.model import Request, ScriptedModel, Turn, mentions, say, use
from support.place import BRANCH, Landed, Place
from support.serving import real_environment

NEW = "backend/discount.py"
BODY = {"model": "claude-opus-4-5", "max_tokens": 9, "tools": [{"name": "x"}], "messages": [{"content": "alone"}]}
# Of the three logins, this one is in the environment of the session's shell, as the word of its run.
ALONE = (
    'curl -s --noproxy "*" "$ANTHROPIC_BASE_URL/v1/messages" -H "authorization: Bearer $ANTHROPIC_AUTH_TOKEN" '
    f"-H 'content-type: application/json' -d '{json.dumps(BODY)}'"
)
SECOND = "echo a second one | claude --print --model claude-opus-4-5"
HALF_A_DOLLAR = Turn(say("ok").blocks, cost={"input_tokens": 100_000, "output_tokens": 1})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """With the strongest sandbox of this host."""
    with Place(tmp_path / "place", local=True, settings={"SANDBOX": "auto"}) as place:
        yield place


def engine(place: Place, model: ScriptedModel, **settings: str) -> ClaudeCodeEngine:
    login = {"CLAUDE_CODE_OAUTH_TOKEN": "", "ANTHROPIC_AUTH_TOKEN": "the-login-of-the-model"}
    environment = real_environment(place, model, **login, **settings)
    return ClaudeCodeEngine(place.config, settings=Settings.from_env(environment), sink=place._keep)


def script(command: str) -> ScriptedModel:
    """A session that does its task and has its shell do this."""

    def writes(request: Request) -> Turn:
        return use("Write", file_path=f"{request.cwd}/{NEW}", content="RATE = 1\n")

    model = ScriptedModel([writes, use("Bash", command=command), say("done")])
    for alone in ('"content": "alone"', "a second one\\n"):
        model.route(mentions(alone), [], then=HALF_A_DOLLAR)
    return model


def test_the_record_and_the_commit_say_what_all_of_it_has_cost(place: Place) -> None:
    with script(f"{ALONE}; {SECOND}") as model:
        place.ask(engine(place, model))
    assert len(model.asked) == 3 + 2
    [result] = [record for record in place.records if record["event"] == "result"]
    assert result["cost_usd"] == pytest.approx((2 * (100_000 * 5 + 25) + 3 * (1000 * 5 + 50 * 25)) / 1e6)
    assert (result["input_tokens"], result["cost_estimated"]) == (203_000, False)
    assert f"Cost: USD {result['cost_usd']:.4f}\n" in Landed(place.repo, BRANCH).message


def test_a_session_that_asks_by_itself_is_stopped_at_its_limit_and_nothing_is_pushed(place: Place) -> None:
    with (
        script(f"for i in 1 2 3 4 5 6; do {ALONE}; done; sleep 600") as model,
        pytest.raises(ActorError, match=r"MAX_COST_USD \(now 0.9\)"),
    ):
        place.ask(engine(place, model, MAX_COST_USD="0.9"))
    assert len(model.asked) == 2 + 2
    assert BRANCH not in place.repo.branches()
