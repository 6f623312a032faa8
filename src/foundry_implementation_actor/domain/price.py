"""What a model's tokens cost, and the table of it: a fact about providers, so an operator can set another.

The table that is shipped holds list prices of Anthropic's own service in US dollars for a million
tokens. They age: a model that no row names is counted at the dearest of all rows, and said to be an
estimate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

_MILLION = 1_000_000
# What writing into a cache for five minutes or for an hour costs and what reading from one does, by the input's price.
_CACHE_WRITE, _CACHE_WRITE_1H, _CACHE_READ = 1.25, 2.0, 0.1
# What providers put around the name of a family: a region and vendor before it, a date and a version after it.
_AROUND = r"(?:.*[./])?{family}(?:[-@]\d{{8}})?(?:-latest|-v\d+(?::\d+)?|\[1m\])?"


_MOST = 10**9

SEARCH_USD = 0.01
"""What one search of the web costs that the model's service makes for a request (list price of Anthropic's)."""


class Cost(NamedTuple):
    """US dollars, and whether they rest on a guess."""

    usd: float
    estimated: bool


def count(value: object) -> int:
    """A count, at most a billion: more is none, and of thousands of digits Python makes no text again."""
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def searches(given: Mapping[str, Any]) -> int:
    """The searches of the web that a `usage` of the Messages API states."""
    tools = given.get("server_tool_use")
    return count(tools.get("web_search_requests")) if isinstance(tools, dict) else 0


class Usage(NamedTuple):
    """The tokens of one message of a model. What is cached stands apart from `input`, as the API states it."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0

    @property
    def all_input(self) -> int:
        """Everything that was put before the model."""
        return self.input + self.cache_write + self.cache_write_1h + self.cache_read

    def larger(self, other: Usage) -> Usage:
        """The larger of both, kind by kind."""
        return Usage(*map(max, self, other))

    @classmethod
    def stated(cls, given: Mapping[str, Any]) -> Usage:
        """The tokens that a `usage` of the Messages API states; what is no count is none.

        Its `iterations`, where there are some, are billed one by one, and its own numbers leave some of them out.
        """
        iterations = given.get("iterations")
        parts = iterations if isinstance(iterations, list) else []
        counted = [cls._one(part) for part in parts if isinstance(part, dict)]
        return cls._one(given).larger(cls(*map(sum, zip(*counted, strict=True))))

    @classmethod
    def _one(cls, given: Mapping[str, Any]) -> Usage:
        written, by_time = count(given.get("cache_creation_input_tokens")), given.get("cache_creation")
        an_hour = by_time.get("ephemeral_1h_input_tokens") if isinstance(by_time, dict) else 0
        for_an_hour = min(count(an_hour), written)
        put_in, put_out, read = (count(given.get(f"{kind}_tokens")) for kind in ("input", "output", "cache_read_input"))
        return cls(put_in, put_out, written - for_an_hour, for_an_hour, read)


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_write: float
    cache_write_1h: float
    cache_read: float

    def cost(self, usage: Usage) -> float:
        """US dollars."""
        return float(sum(getattr(self, kind) * count for kind, count in usage._asdict().items())) / _MILLION


def price(input_usd: float, output_usd: float) -> Price:
    """A price whose cache costs what is usual: writing 1.25 or (for an hour) 2 times, reading 0.1 times the input."""
    return Price(input_usd, output_usd, input_usd * _CACHE_WRITE, input_usd * _CACHE_WRITE_1H, input_usd * _CACHE_READ)


BUILT_IN: Mapping[str, Price] = {
    **dict.fromkeys(("claude-opus-4", "claude-opus-4-0", "claude-opus-4-1", "claude-3-opus"), price(15, 75)),
    **dict.fromkeys(("claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8"), price(5, 25)),
    **dict.fromkeys(
        (
            "claude-sonnet-4",
            "claude-sonnet-4-0",
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "claude-3-7-sonnet",
        ),
        price(3, 15),
    ),
    "claude-haiku-4-5": price(1, 5),
    "claude-3-5-haiku": price(0.8, 4),
}


@dataclass(frozen=True)
class Prices:
    """The price of each family of models, by the family's name."""

    table: Mapping[str, Price] = field(default_factory=lambda: BUILT_IN)

    def of(self, model: str) -> tuple[Price, bool]:
        """The price of a model, and whether it is known; what is not known costs as much as the dearest."""
        for family, known in self.table.items():
            if re.fullmatch(_AROUND.format(family=re.escape(family)), model):
                return known, True
        return self._dearest(), False

    def _dearest(self) -> Price:
        kinds = [kind.name for kind in fields(Price)]
        return Price(*(max(getattr(known, kind) for known in self.table.values()) for kind in kinds))


def read_prices(text: str) -> Prices:
    """The shipped table with the rows of a JSON text added or in their place.

    Args:
        text: `{"<family>": {"input": 3, "output": 15}}`, each number US dollars for a million tokens;
            `cache_write`, `cache_write_1h` and `cache_read` may be left out.

    Raises:
        ValueError: saying what is wrong with it.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(given, dict) or not given:
        raise ValueError('must be an object like {"claude-sonnet-4-5": {"input": 3, "output": 15}}')
    return Prices({**BUILT_IN, **{family: _row(family, row) for family, row in given.items()}})


def _row(family: str, row: object) -> Price:
    known = {kind.name for kind in fields(Price)}
    if not family or not isinstance(row, dict) or not {"input", "output"} <= set(row) <= known:
        raise ValueError(f"{family!r} must have `input` and `output`, and may have {', '.join(sorted(known))}")
    for kind in _no_prices(row):
        raise ValueError(f"{family!r}: `{kind}` must be a number of US dollars from 0 to 1,000,000")
    usual = price(float(row["input"]), float(row["output"]))
    return replace(usual, **{kind: float(value) for kind, value in row.items()})


def _no_prices(row: Mapping[str, Any]) -> Iterator[str]:
    for kind, value in row.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MILLION:
            yield kind
