"""Reading the answer of an `assess-task` session out of what it said last.

A model sometimes writes a string where an object was asked for. Where the meaning is certain it is
repaired; where it is not, the answer is refused rather than guessed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip

_FIELDS = ("feasible", "objections", "commitments")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_SHOWN = 600
_LONGEST = 1024 * 1024
_DEEPEST = 50
# Each brace that opens no object costs a look at the text before it; thousands of them are no answer.
_PATIENCE = 5_000
_START = re.compile(r"\{(?=\s*[\"}])")


def read_assessment(text: str, schema: Mapping[str, Any] | None, ids: Iterable[str]) -> dict[str, Any]:
    """The answer in a session's last text: `feasible`, `objections` and `commitments`.

    Args:
        text: what the session said last.
        schema: the JSON schema of the answer; further properties that it names are kept as they came.
        ids: the ids of the acceptance surface.

    Raises:
        ActorError: STOPPED, saying what came, when there is no JSON object, when its meaning is not
            certain, or when it says both that all is feasible and that something is not.
    """
    answer = _last_object(text)
    known = tuple(ids)
    feasible = _feasible(answer)
    objections = list(_entries(answer, "objections", "why", known))
    commitments = list(_entries(answer, "commitments", "commitment", known))
    if feasible and objections:
        raise _unusable("it says `feasible: true` and objects at the same time", answer)
    further = {key: answer[key] for key in (schema or {}).get("properties", {}) if key in answer and key not in _FIELDS}
    return {"feasible": feasible, "objections": objections, "commitments": commitments, **further}


def _last_object(text: str) -> dict[str, Any]:
    if len(text) > _LONGEST:
        raise _unusable(f"it is longer than {_LONGEST:,} characters", text)
    last: dict[str, Any] | None = None
    for found in _objects(text):
        last = found
    if last is None:
        raise _unusable("there is no JSON object in it", text)
    if _deeper(last, _DEEPEST):
        raise _unusable(f"its JSON is nested deeper than {_DEEPEST} levels", text)
    # A lone surrogate is valid JSON and no valid reply.
    read: dict[str, Any] = json.loads(json.dumps(last, ensure_ascii=False).encode("utf-8", "replace"))
    return read


def _deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_deeper(item, levels - 1) for item in inner)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand in a text, in order, none inside another."""
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
    in_vain, start = 0, _START.search(text)
    while start:
        try:
            found, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            in_vain, end = in_vain + 1, start.end()
        else:
            yield found
        if in_vain > _PATIENCE:
            raise _unusable("it is full of braces that open no JSON object", text)
        start = _START.search(text, end)


def _finite(word: str) -> float:
    number = float(word)
    if math.isinf(number):
        raise ValueError(f"{word} is no number that JSON can carry on")
    return number


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _feasible(answer: Mapping[str, Any]) -> bool:
    value = answer.get("feasible")
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _WORDS:
        return _WORDS[word]
    raise _unusable("its `feasible` is neither true nor false", answer)


def _entries(answer: Mapping[str, Any], field: str, words: str, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The objects of a list of the answer, each with the `id` of one expectation.

    `words` is the key under which what is said about it is put.
    """
    given = answer.get(field)
    items = given if isinstance(given, list) else _listed(given, field, answer)
    for item in items:
        entry = _entry(item, words, ids)
        if entry is None:
            known = ", ".join(map(repr, ids))
            raise _unusable(f"an entry of `{field}` names no single expectation ({known}): {_shown(item)}", answer)
        yield _worded(entry, words)


def _worded(entry: dict[str, Any], words: str) -> dict[str, Any]:
    """The entry, with its one text under `words` where a session called it otherwise (`reason`, `text`)."""
    texts = [text for key, text in entry.items() if isinstance(text, str) and text not in ("", entry["id"])]
    return {**entry, words: texts[0]} if words not in entry and len(texts) == 1 else entry


def _listed(given: object, field: str, answer: Mapping[str, Any]) -> list[Any]:
    """A list out of what stands in a list's place: nothing, one entry, or a mapping by id."""
    if given is None:
        return []
    if isinstance(given, dict):
        return [given] if "id" in given else [{key: value} for key, value in given.items()]
    raise _unusable(f"its `{field}` is no list", answer)


def _entry(item: object, words: str, ids: tuple[str, ...]) -> dict[str, Any] | None:
    """One entry as an object with an `id` of the surface; None when its meaning is not certain."""
    if isinstance(item, str):
        named = _named_in(item, ids)
        return {"id": named, words: item} if named else None
    if not isinstance(item, dict):
        return None
    if "id" in item:
        named = _same_id(item["id"], ids)
        return {**item, "id": named} if named else None
    if len(item) == 1:
        return _by_key(*next(iter(item.items())), words, ids)
    values = [value for value in item.values() if isinstance(value, str) and value in ids]
    return {"id": values[0], **item} if len(values) == 1 else None


def _by_key(key: str, value: object, words: str, ids: tuple[str, ...]) -> dict[str, Any] | None:
    """An entry out of `{<id>: <what is said about it>}`."""
    named = _same_id(key, ids)
    if named and isinstance(value, str):
        return {"id": named, words: value}
    if named and isinstance(value, dict) and _same_id(value.get("id", named), ids) == named:
        return {**value, "id": named}
    return None


def _same_id(value: object, ids: tuple[str, ...]) -> str | None:
    """The id that a value is, apart from white space around it and letter case."""
    if value in ids:
        return str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    alike = [name for name in ids if name.casefold() == str(value).strip().casefold()]
    return alike[0] if len(alike) == 1 else None


def _named_in(text: str, ids: tuple[str, ...]) -> str | None:
    """The one id that a text names as a whole word, or None when it names none or several."""
    longest_first = sorted(ids, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first)) or r"(?!)"
    found = set(re.findall(rf"(?<![\w-])(?<!\w\.)(?:{pattern})(?![\w-]|\.\w)", text))
    return found.pop() if len(found) == 1 else None


def _unusable(why: str, came: object) -> ActorError:
    return ActorError(
        Code.STOPPED, f"the session's answer cannot be used: {why}; what came: {_shown(came)}", hint="ask again"
    )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(text.strip(), _SHOWN) or "nothing"
