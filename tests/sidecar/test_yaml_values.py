"""Texts with values in them: task files and scripts."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.document import MISSING
from foundry_implementation_actor.domain.error import ActorError, Code, ConfigError
from foundry_implementation_actor.domain.json_text import MAX_DEPTH
from foundry_implementation_actor.system.yaml_values import read_values

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


def values(text: str) -> Any:
    return read_values(text, "x.yaml").root


@settings(max_examples=50)
@given(OBJECTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_json_object_is_read_as_it_is(value: dict[str, Any], indent: int | str | None, ascii_only: bool) -> None:
    assert values(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == value


@settings(max_examples=50)
@given(OBJECTS, st.booleans())
def test_what_yaml_writes_of_such_values_is_read_as_it_was(value: dict[str, Any], flow: bool) -> None:
    assert values(yaml.safe_dump(value, default_flow_style=flow)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-7", -7), ("+7", 7), ("0", 0), ("1.5", 1.5), ("1.5e+3", 1500.0), ("true", True), ("False", False),
        ("~", None), ("null", None), ("", None), ("'7'", "7"), ("!!str 7", "7"), ("yes", "yes"), ("on", "on"),
        ("0012", "0012"), ("0x1F", "0x1F"), ("1_000", "1_000"), ("1:30", "1:30"), (".inf", ".inf"),
        ("2026-01-02", "2026-01-02"), ("9" * 500, "9" * 500), ("1.0e+999", "1.0e+999"),
    ],
)  # fmt: skip
def test_a_scalar_is_a_number_or_a_boolean_where_json_would_read_it_so(text: str, value: object) -> None:
    read = values(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(value))


def test_an_alias_is_what_it_names() -> None:
    assert values("a: &x {b: [1, true]}\nc: *x") == {"a": {"b": [1, True]}, "c": {"b": [1, True]}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "a": 2}', "x.yaml:1:10: a: the key is written twice"),
        ('{"a":\n\t1, "a": 2}', "x.yaml: the text has the key 'a' more than once"),
        ('{"a": 1', "x.yaml:1:8: not readable as JSON: Expecting ',' delimiter"),
        ("{a: [1}", "x.yaml:1:7: not readable as YAML"),
        ("a: 1\nb: !!set {x}\n", "x.yaml:2:4: b: the tag 'tag:yaml.org,2002:set' is not read"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2:1: a second YAML document"),
        ('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "x.yaml: the text is nested more than 64 levels deep"),
        ("a: 1\na: 2\nb: !x 1", "x.yaml:2:1: a: the key is written twice (first in line 1); keep one of the two\nx.y"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_bad_request_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ActorError) as raised:
        values(text)
    assert (raised.value.code, type(raised.value) is ConfigError) == (Code.BAD_REQUEST, False)
    assert str(raised.value).startswith(told)


@settings(max_examples=50)
@given(st.text() | st.text('{}[]":,\\ut019.e-\n\t &*!', max_size=60))
def test_any_text_is_values_or_is_refused(text: str) -> None:
    with contextlib.suppress(ActorError):
        read = values(text)
        assert read is MISSING or json.dumps(read, allow_nan=False)
