"""JSON text to plain values: nothing comes out of it that could not be written as JSON again."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

MAX_DEPTH = 64
MAX_DIGITS = 400


def read_json(text: str, what: str) -> Any:
    """Read a JSON value.

    Args:
        text: the JSON.
        what: what messages call the text, such as `the body`.

    Raises:
        ValueError: it is no JSON (the cause is then json's own error, with the position), a key stands
            twice in one object, a number is too large or no number, or it is nested deeper than
            `MAX_DEPTH` levels.
    """
    try:
        value = json.loads(
            text, parse_constant=_no_number, parse_float=_float, parse_int=_int, object_pairs_hook=_object
        )
        _check_depth(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ValueError) else _TOO_DEEP
        raise ValueError(f"{what} {said}") from None
    return value


_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for box in level if isinstance(box, dict | list) for item in _items(box)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _items(box: dict[str, Any] | list[Any]) -> Any:
    return box.values() if isinstance(box, dict) else box


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"has the key {twice[:40]!r} more than once in one object")
    return value


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _int(text: str) -> int:
    return int(text) if len(text) <= MAX_DIGITS else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"holds {text[:40]}, which is no number that can be used")
