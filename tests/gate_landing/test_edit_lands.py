"""Any pairs as edits: the file is untouched, or exactly what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.edit import Pair
from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.ask import Ask, Edits
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.outcome import Landed, Refused
from foundry_implementation_actor.gate.staging import MOST_BYTES
from support.apps import SCAFFOLD, python_app
from support.judging import gate

PIECES = st.sampled_from(["a", "b", "aa", "ab", "\n    # ", "\t", "\u00e9", "\u00a0", "$&", "\\1", "\r", "WRONG", ""])
TEXTS = st.lists(PIECES, max_size=6).map("".join)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return gate(python_app(tmp_path_factory.mktemp("edited") / "app"))


def applied(text: bytes, pairs: list[Pair]) -> bytes | None:
    """What the pairs ask for, counted place by place; None when they ask for nothing that can be done."""
    for find, replace in pairs:
        starts = [start for start in range(len(text)) if find and text.startswith(find, start)]
        if len(starts) != 1:
            return None
        text = text[: starts[0]] + replace + text[starts[0] + len(find) :]
    return text if pairs else None


@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_is_untouched_or_exactly_what_was_asked(at: Gate, tail: str, asked: list[tuple[str, str]]) -> None:
    path = at.root / SCAFFOLD
    before = f"class Cart:\n    # {tail}".encode()
    path.write_bytes(before)
    pairs = [Pair(find.encode(), replace.encode()) for find, replace in asked]
    wanted = applied(before, pairs)
    outcome = at.implement(Ask(Target("shop", "Cart"), Edits(tuple(pairs))))
    if isinstance(outcome, Landed):
        assert path.read_bytes() == wanted
    else:
        assert path.read_bytes() == before
        assert wanted is None or b"WRONG" in wanted


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_as_an_edit_of_one_place_land_as_they_are(at: Gate, replace: bytes) -> None:
    path: Path = at.root / SCAFFOLD
    path.write_bytes(b"class Cart:\n    # HERE")
    outcome = at.implement(Ask(Target("shop", "Cart"), Edits((Pair(b"HERE", replace),))))
    landed = b"class Cart:\n    # " + replace
    assert path.read_bytes() == (landed if isinstance(outcome, Landed) else b"class Cart:\n    # HERE")
    assert isinstance(outcome, Landed) is (b"WRONG" not in landed)


def test_edits_do_not_make_a_file_larger_than_a_body_may_be(at: Gate) -> None:
    path: Path = at.root / SCAFFOLD
    large = b"class Cart:\n    # HERE" + b"x" * MOST_BYTES
    path.write_bytes(large)
    outcome = at.implement(Ask(Target("shop", "Cart"), Edits((Pair(b"HERE", b"THERE"),))))
    assert isinstance(outcome, Refused)
    assert "are the most" in outcome.because
    assert path.read_bytes() == large
    assert isinstance(at.implement(Ask(Target("shop", "Cart"), Edits((Pair(b"HERE", b""),)))), Landed)
