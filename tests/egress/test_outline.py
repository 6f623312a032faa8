"""The outline of a JSON text is the same however the text comes in pieces, and takes no more room than it may."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.egress.outline import LARGEST, Outline

TEXTS = st.text() | st.sampled_from(['a "quoted" word', "back\\slash", "{[", "x" * 256, "x" * 257, "é" * 200, '\\"'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(max_size=20), VALUES, max_size=5)


def outlined(text: bytes, depth: int, size: int = 65_536) -> dict[str, Any] | None:
    outline = Outline(depth)
    for at in range(0, len(text), size):
        outline.feed(text[at : at + size])
    return outline.value()


def expected(value: Any, depth: int, *, ascii_only: bool) -> Any:
    """The outline by recursion over the whole value; a string's length is that of its JSON in bytes."""
    if isinstance(value, str):
        return "" if len(json.dumps(value, ensure_ascii=ascii_only).encode()) > 256 + 2 else value
    if isinstance(value, dict | list) and depth == 0:
        return None
    if isinstance(value, dict):
        return {
            expected(key, 1, ascii_only=ascii_only): expected(inner, depth - 1, ascii_only=ascii_only)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [expected(inner, depth - 1, ascii_only=ascii_only) for inner in value]
    return value


@given(OBJECTS, st.integers(1, 4), st.integers(1, 9), st.booleans(), st.sampled_from([None, 2]))
def test_an_outline_is_the_value_down_to_a_depth(
    value: dict[str, Any], depth: int, size: int, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")
    value = json.loads(text)
    wanted = expected(value, depth, ascii_only=ascii_only)
    assert outlined(text, depth, size) == outlined(text, depth) == wanted


@given(st.binary(max_size=200) | st.text('{}[]",:\\1a ', max_size=60).map(str.encode), st.integers(1, 9))
def test_any_bytes_have_one_outline_or_none(text: bytes, size: int) -> None:
    assert outlined(text, 1, size) == outlined(text, 1)


@pytest.mark.parametrize(
    "text",
    [b"", b"[1]", b'{"a": 1, "a": 2}', b'{"a": 1}{}', b'{"a": 1', b'{"a"]', b'{"a": "\xff"}', b"}", b"[" * 9_999],
)
def test_what_is_no_object_or_not_clear_has_none(text: bytes) -> None:
    assert outlined(text, 4) is None


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a": [' + b"1," * 200_000, b'{"' + b"x" * 200_000, b" " * 200_000])
def test_an_outline_that_is_too_large_is_given_up(text: bytes) -> None:
    assert outlined(text, 200_000, 1_000) is None
    assert outlined(b'{"a": 1, "b": [' + b"1," * LARGEST + b"1]}", 1) == {"a": 1, "b": None}
