from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.session.answer import read_assessment

IDS = ("E1", "E10", "E-1", "e.2")
SCHEMA: dict[str, Any] = {"properties": {"feasible": {}, "objections": {}, "commitments": {}, "confidence": {}}}


def read(text: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return read_assessment(text, schema, IDS)


def entries(field: str, value: object, *, feasible: bool = False) -> list[dict[str, Any]]:
    answer = read(json.dumps({"feasible": feasible, field: value}))
    found: list[dict[str, Any]] = answer[field]
    return found


def test_an_answer_as_it_was_asked_for_passes_as_it_is() -> None:
    answer = {"feasible": True, "objections": [], "commitments": [{"id": "E1", "commitment": "GET answers 200"}]}
    assert read(json.dumps(answer)) == answer


@pytest.mark.parametrize(
    "text",
    [
        '{"feasible": true}',
        'Here:\n```json\n{"feasible": true}\n```\nThat is all.',
        '{"feasible": false} no, rather {"feasible": true}',
        'set {x} and {"a": {"b": "}{"}} then {"feasible": true, "n": {"x": [{"y": "\\"}"}]}} {',
        '{"feasible": true, "note": "é \\ud83d\\ude00"} }}',
        '{"feasible": true} {"feasible": NaN} {"feasible": 1e999}',
    ],
)
def test_the_last_json_object_is_the_answer(text: str) -> None:
    assert read(text) == {"feasible": True, "objections": [], "commitments": []}


@pytest.mark.parametrize(
    ("value", "meaning"), [(True, True), ("true", True), (" Yes ", True), ("FALSE", False), ("no", False)]
)
def test_feasible_is_repaired_where_its_meaning_is_certain(value: object, meaning: bool) -> None:
    assert read(json.dumps({"feasible": value}))["feasible"] is meaning


@pytest.mark.parametrize("value", [None, 1, 0, "", "partly", "yes, if", [], {}, [True]])
def test_feasible_is_refused_where_it_is_not(value: object) -> None:
    with pytest.raises(ActorError, match="neither true nor false") as raised:
        read(json.dumps({"feasible": value}))
    assert raised.value.code is Code.STOPPED


@pytest.mark.parametrize(
    ("given", "repaired"),
    [
        ([{"id": "E1", "why": "no"}], [{"id": "E1", "why": "no"}]),
        ([{"id": " e10 ", "why": "no"}], [{"id": "E10", "why": "no"}]),
        (["E10 is not determined."], [{"id": "E10", "why": "E10 is not determined."}]),
        (["we cannot do E-1"], [{"id": "E-1", "why": "we cannot do E-1"}]),
        (["e.2: no"], [{"id": "e.2", "why": "e.2: no"}]),
        ({"E1": "no", "E10": {"why": "never"}}, [{"id": "E1", "why": "no"}, {"id": "E10", "why": "never"}]),
        ([{"E1": "no"}], [{"id": "E1", "why": "no"}]),
        ([{"id": "E1", "reason": "no"}], [{"id": "E1", "reason": "no", "why": "no"}]),
        ([{"id": "E1", "reason": "no", "note": "x"}], [{"id": "E1", "reason": "no", "note": "x"}]),
        ({"id": "E1", "why": "no"}, [{"id": "E1", "why": "no"}]),
        ([{"expectation": "E1", "why": "no"}], [{"id": "E1", "expectation": "E1", "why": "no"}]),
        (None, []),
        ([], []),
        ({}, []),
    ],
)
def test_an_objection_is_repaired_where_its_meaning_is_certain(given: object, repaired: list[Any]) -> None:
    assert entries("objections", given) == repaired


@pytest.mark.parametrize(
    "given",
    [
        ["no reason at all"],
        ["E1 and E10 clash"],
        ["E11 is open", "E-10", "E1.5"],
        ["E-1-2 is open"],
        [{"id": "E7", "why": "no"}],
        [{"id": None}],
        [{"id": ["E1"]}],
        [{"because": "no"}],
        [{"expectation": "E1", "against": "E10"}],
        [{"E1": 3}],
        [{"E1": {"id": "E10"}}],
        {"E7": "no"},
        [3],
        [["E1"]],
        "E1",
        7,
        True,
    ],
)
def test_an_objection_is_refused_where_it_is_not(given: object) -> None:
    with pytest.raises(ActorError, match="what came") as raised:
        entries("objections", given)
    assert raised.value.code is Code.STOPPED


def test_a_number_names_an_id_that_is_written_the_same() -> None:
    assert read_assessment('{"feasible": "no", "objections": [{"id": 1}]}', None, ["1"])["objections"] == [{"id": "1"}]


def test_a_commitment_as_a_text_gets_its_own_key() -> None:
    assert entries("commitments", ["E1: GET answers 200"], feasible=True) == [
        {"id": "E1", "commitment": "E1: GET answers 200"}
    ]


def test_feasible_with_an_objection_is_refused_as_a_contradiction() -> None:
    with pytest.raises(ActorError, match="at the same time"):
        entries("objections", [{"id": "E1"}], feasible=True)


def test_only_what_the_schema_names_is_kept_besides() -> None:
    text = '{"feasible": true, "confidence": 0.5, "mood": "good"}'
    assert set(read(text, SCHEMA)) == {"feasible", "objections", "commitments", "confidence"}
    assert set(read(text)) == {"feasible", "objections", "commitments"}


@pytest.mark.parametrize("text", ["", "I could do that.", "[1, 2]", "{'feasible': true}", "{" * 900_000])
def test_no_object_is_refused_with_what_came(text: str) -> None:
    with pytest.raises(ActorError, match="no JSON object"):
        read(text)


@pytest.mark.parametrize("text", ['{"feasible":' * 80_000, '{"feasible"' * 90_000, '{"feasible": true}' * 60_000])
def test_a_text_that_would_take_for_ever_to_search_is_refused(text: str) -> None:
    with pytest.raises(ActorError, match=r"full of braces|longer than"):
        read(text)


def test_an_answer_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(ActorError, match="deeper than 50 levels"):
        read('{"feasible": true, "commitments": [' + "[" * 60 + "]" * 60 + "]}")


def test_half_a_surrogate_pair_cannot_get_into_the_reply() -> None:
    said = entries("objections", [{"id": "E1", "why": "\ud800"}])
    json.dumps(said, ensure_ascii=False).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(IDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.sampled_from(IDS), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.text() | st.text('{}":,[]tfE1\\ue', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ActorError):
        read(text)


@given(JSON, JSON, JSON)
def test_any_answer_is_read_or_refused_and_what_is_read_names_known_ids(feasible: Any, bad: Any, good: Any) -> None:
    with contextlib.suppress(ActorError):
        answer = read(json.dumps({"feasible": feasible, "objections": bad, "commitments": good}), SCHEMA)
        assert isinstance(answer["feasible"], bool)
        assert all(entry["id"] in IDS for entry in answer["objections"] + answer["commitments"])
        json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
