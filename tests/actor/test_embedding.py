"""The public interface: four lines make an actor, on the framework's own mailbox."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from papeete_actor_synchronous_messaging.actor import Actor, Refusal
from papeete_actor_synchronous_messaging.engine import EngineError
from papeete_actor_synchronous_messaging.mailbox import InProcessMailbox

import foundry_implementation_actor as fia
from foundry_implementation_actor import CapabilityConfig, ClaudeCodeEngine, HandlerError, Settings, make_implement_task
from support.place import BRANCH, TOKEN, Place, question, task, write

ANSWER = {"answer": {"feasible": True, "commitments": [{"id": "E1", "commitment": "it will"}]}}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


@pytest.fixture
def mailbox(place: Place, monkeypatch: pytest.MonkeyPatch) -> InProcessMailbox:
    """An actor as a user of the package makes it, its settings in the environment of the process."""
    for name, value in place.environment(write("backend/x"), ANSWER).items():
        monkeypatch.setenv(name, value)
    mailbox = InProcessMailbox()
    fia.render_cards(CapabilityConfig.load(place.folder), place.folder)

    config = CapabilityConfig.load(place.folder)
    engines = {config.engine: ClaudeCodeEngine(config)}
    actions = {"implement-task": make_implement_task(config)}
    Actor.from_card(place.folder, mailbox=mailbox, engines=engines, actions=actions)
    return mailbox


def ask(mailbox: InProcessMailbox, verb: str, door: str, payload: dict[str, Any]) -> Any:
    [name] = mailbox.addressees()
    return mailbox.deliver(from_="me", to=name, verb=verb, door=door, payload=payload)


def test_four_lines_make_an_actor_that_implements(place: Place, mailbox: InProcessMailbox) -> None:
    reply = ask(mailbox, verb="request", door="implement-task", payload=task())
    assert reply == {"accepted": True, "branch": BRANCH, "images": []}
    assert place.repo.sha(BRANCH)


def test_the_same_actor_assesses_without_a_handler(mailbox: InProcessMailbox) -> None:
    reply = ask(mailbox, verb="query", door="assess-task", payload=question())
    assert reply["feasible"] is True


@pytest.mark.parametrize(
    "wrong", [{"title": 3}, {"unknown": 1}, {"definition_of_done": []}, {"definition_of_done": [{}, None, 3]}]
)
def test_a_payload_that_is_wrong_is_refused_by_the_membrane(
    mailbox: InProcessMailbox, wrong: dict[str, object]
) -> None:
    with pytest.raises(Refusal):
        ask(mailbox, verb="request", door="implement-task", payload=task(**wrong))


def test_every_public_name_is_there() -> None:
    assert all(getattr(fia, name) is not None for name in fia.__all__)
    assert set(fia.__all__) <= set(dir(fia))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fia.nothing  # noqa: B018 - the access is the test


def test_importing_the_package_pulls_in_no_server_no_telemetry_and_little_else() -> None:
    heavy = "('starlette', 'uvicorn', 'opentelemetry', 'click', 'ruamel', 'papeete_actor_synchronous_messaging')"
    look = f"import sys, foundry_implementation_actor; print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_making_the_engine_pulls_in_no_server_and_no_telemetry(place: Place) -> None:
    look = (
        "import sys; from foundry_implementation_actor import CapabilityConfig, ClaudeCodeEngine, make_implement_task;"
        " config = CapabilityConfig.load(sys.argv[1]);"
        " ClaudeCodeEngine(config), make_implement_task(config);"
        " print([m for m in sys.modules if m.split('.')[0] in ('starlette', 'uvicorn', 'opentelemetry')])"
    )
    argv = [sys.executable, "-c", look, str(place.folder)]
    ran = subprocess.run(argv, env=place.environment(write("x")), capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_constructors_keywords_win_over_the_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.environment(write("backend/x"), {"say": "b"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_TOKEN", "tok-of-the-environment")
    config = CapabilityConfig.load(place.folder)
    engine = ClaudeCodeEngine(
        config, github_token=TOKEN, clone_timeout=60, fetch_timeout=10, session_timeout=60, max_turns=1,
        assess_timeout=60, assess_max_turns=5,
    )  # fmt: skip
    prompt = f"verb: request\ndoor: implement-task\n{json.dumps({'payload': task()})}"
    with pytest.raises(EngineError, match="budget of 1 turns"):
        engine.judge(system="", prompt=prompt)


def test_the_settings_keywords_make_the_same_engine(place: Place) -> None:
    settings = Settings.from_env(place.environment(write("backend/x")))
    assert ClaudeCodeEngine(CapabilityConfig.load(place.folder), **settings.engine_kwargs()).name == "claude-code"


PROMPTS = [
    "",
    "hello",
    "verb: request\ndoor: other\n{}",
    "verb: request\ndoor: implement-task\nnot json",
    "verb: request\ndoor: implement-task\n[]",
]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_that_is_not_the_frameworks_is_refused(place: Place, prompt: str) -> None:
    engine = place.engine(write("x"))
    with pytest.raises(EngineError, match="this engine answers implement-task, assess-task"):
        engine.judge(system="", prompt=prompt)


@pytest.mark.parametrize("judged", [None, {}, {"accepted": True}, {"accepted": False, "because": "x", "more": 1}])
def test_a_handler_that_is_given_no_finished_run_says_what_to_register(
    place: Place, judged: dict[str, object] | None
) -> None:
    handle = make_implement_task(CapabilityConfig.load(place.folder))
    with pytest.raises(HandlerError, match=r"register ClaudeCodeEngine\(config\) as engine 'claude-code'"):
        handle(None, {}, "me", judged=judged)
