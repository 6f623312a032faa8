"""What a model costs: the table that is shipped, and the file that adds to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.actor.price_file import prices_in
from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.domain.price import BUILT_IN, Price, Prices, Usage, price, read_prices


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("anthropic/claude-opus-4-5", "claude-opus-4-5"),
        ("claude-opus-4-8[1m]", "claude-opus-4-8"),
    ],
)
def test_a_model_is_known_by_its_family_whatever_a_provider_puts_around_it(model: str, family: str) -> None:
    assert Prices().of(model) == (BUILT_IN[family], True)


@pytest.mark.parametrize(
    "model", ["", "claude-opus-4-99", "claude-sonnet-4-5-pro", "gpt", "xclaude-sonnet-4-5", "a\nb"]
)
def test_another_model_is_not_known_and_costs_as_much_as_the_dearest(model: str) -> None:
    assert Prices().of(model) == (price(15, 75), False)


def test_a_file_adds_rows_and_replaces_rows_and_leaves_the_others(tmp_path: Path) -> None:
    rows = {"claude-haiku-4-5": {"input": 2, "output": 3, "cache_read": 0.5}, "own/model.1": {"input": 0, "output": 0}}
    (tmp_path / "prices.json").write_text(json.dumps(rows))
    prices = prices_in(tmp_path / "prices.json")
    assert prices.of("claude-haiku-4-5") == (Price(2, 3, 2.5, 4, 0.5), True)
    assert prices.of("own/model.1") == (Price(0, 0, 0, 0, 0), True)
    assert prices.of("own/modelx1")[1] is False
    assert prices.of("claude-sonnet-4-5") == Prices().of("claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "MODEL_PRICES is no JSON"),
        (b"[" * 100_000, "MODEL_PRICES is no JSON"),
        (b"[]", "must be an object like"),
        (b"{}", "must be an object like"),
        (b'{"m": 3}', "'m' must have `input` and `output`"),
        (b'{"m": {"input": 1}}', "'m' must have `input` and `output`"),
        (b'{"m": {"input": 1, "output": 1, "colour": 1}}', "'m' must have `input` and `output`"),
        (b'{"m": {"input": -1, "output": 1}}', "'m': `input` must be a number"),
        (b'{"m": {"input": 1, "output": true}}', "'m': `output` must be a number"),
        (b'{"m": {"input": NaN, "output": 1}}', "'m': `input` must be a number"),
        (b"\xff", "MODEL_PRICES is not UTF-8"),
    ],
)
def test_a_file_that_holds_no_prices_is_refused_with_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "prices.json").write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        prices_in(tmp_path / "prices.json")
    assert said in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="MODEL_PRICES cannot be read"):
        prices_in(tmp_path / "prices.json")


JSON = st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.dictionaries(st.text(), inner))


@given(text=st.text() | JSON.map(json.dumps))
def test_any_text_is_prices_or_refused_in_words(text: str) -> None:
    try:
        assert read_prices(text).of("claude-haiku-4-5")[1]
    except ValueError as refused:
        said = str(refused)
        assert said


def test_a_million_tokens_cost_their_price() -> None:
    assert Price(1, 2, 4, 8, 16).cost(Usage(*[1_000_000] * 5)) == 31
