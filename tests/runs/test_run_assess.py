"""The path of `assess-task`: an answer in the card's shape, and nothing written anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.actor.boot import answer_once
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door
from support.place import Place, Step, shell, task, write
from support.repos import SIDECAR

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def test_an_answer_of_an_assessment_comes_back_in_the_cards_shape(place: Place) -> None:
    reply = place.assess(
        {"say": "I looked."}, {"answer": {"feasible": True, "commitments": [{"id": "E1", "commitment": "ok"}]}}
    )
    assert reply["feasible"] is True
    assert reply["commitments"] == [{"id": "E1", "commitment": "ok"}]


def test_an_assessment_that_objects_says_to_what(place: Place) -> None:
    reply = place.assess({"answer": {"feasible": False, "objections": [{"id": "E1", "why": "no such widget"}]}})
    assert reply["feasible"] is False
    assert reply["objections"] == [{"id": "E1", "why": "no such widget"}]


def test_an_expectation_whose_id_is_a_number_is_answered_under_its_text(place: Place) -> None:
    engine = place.engine({"answer": {"feasible": True, "commitments": [{"id": 1, "commitment": "ok"}]}})
    payload = task(acceptance_surface=[{"id": 1, "expectation": "it works"}])
    reply = answer_once(place.folder, place.config, engine, Door.ASSESS, payload)
    assert reply["commitments"] == [{"id": "1", "commitment": "ok"}]


def test_an_assessment_writes_and_pushes_nothing_even_when_its_session_does(place: Place) -> None:
    before = place.repo.branches()
    reply = place.assess(
        write(NEW), shell("git add -A; git commit -qm x; git push origin HEAD"), {"answer": {"feasible": True}}
    )
    assert reply["feasible"] is True
    assert place.repo.branches() == before
    assert all("git-receive-pack" not in request.target for request in place.server.served)
    assert not list((place.state / "runs").iterdir())


WRONG_ANSWERS: dict[str, Step] = {
    "no JSON": {"say": "It can be done."},
    "no feasible": {"answer": {"objections": []}},
    "an unknown expectation": {"answer": {"feasible": False, "objections": [{"id": "E9", "why": "x"}]}},
    "both at once": {"answer": {"feasible": True, "objections": [{"id": "E1", "why": "x"}]}},
}


@pytest.mark.parametrize("what", WRONG_ANSWERS)
def test_an_assessment_whose_answer_is_not_certain_is_an_error(place: Place, what: str) -> None:
    with pytest.raises(ActorError, match="the session's answer cannot be used") as raised:
        place.assess(WRONG_ANSWERS[what])
    assert raised.value.code is Code.STOPPED


def test_an_assessment_is_grounded_like_an_implementation(tmp_path: Path) -> None:
    entry = "{name: n, answers: a, fetch: [echo, rule of the house], into: n.md, load: eager}"
    sidecar = SIDECAR.replace("ground_in: []", f"ground_in: [{entry}]")
    with Place(tmp_path, sidecar=sidecar, local=True) as place:
        place.assess(shell("cat n.md"), {"answer": {"feasible": True}})
        assert "rule of the house" in place.told


def test_an_assessment_of_an_impossible_task_id_is_a_callers_mistake(place: Place) -> None:
    with pytest.raises(ActorError, match="it must be 1 to 64") as raised:
        place.assess({"answer": {"feasible": True}}, task_id="a/b")
    assert raised.value.code is Code.BAD_REQUEST
    assert not place.state.exists()


def test_two_assessments_and_an_implementation_of_one_task_do_not_mix(place: Place) -> None:
    engine = place.engine(write(NEW), {"answer": {"feasible": True}})
    assert place.ask(engine)["accepted"] is True
    reply = place.assess({"answer": {"feasible": False}})
    assert reply["feasible"] is False
