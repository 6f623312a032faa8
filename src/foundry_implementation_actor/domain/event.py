"""Event records: one JSON object a line, never above the line limit of the log store.

The store rejects a whole line over its limit instead of trimming it, so the bound is kept here and
what is dropped is counted in the record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sized
from itertools import islice
from typing import Any

LINE_LIMIT = 65_536

_ROOM_FOR_COUNT = 64
_MOST_ITEMS = 1000


def clip(text: str, limit: int) -> str:
    """Keep the head and the tail of a text within `limit` bytes of UTF-8, saying what was dropped.

    `limit` below 256 counts as 256.
    """
    raw = text.encode("utf-8", "replace")
    limit = max(limit, 256)
    if len(raw) <= limit:
        return raw.decode("utf-8")
    half = (limit - _ROOM_FOR_COUNT) // 2
    head, tail = raw[:half].decode("utf-8", "ignore"), raw[-half:].decode("utf-8", "ignore")
    dropped = len(raw) - len(head.encode()) - len(tail.encode())
    return f"{head}…[{dropped} bytes dropped]…{tail}"


def line(record: Mapping[str, Any]) -> str:
    """One record as one line of JSON of at most `LINE_LIMIT` bytes of UTF-8, without a newline."""
    whole = text = _dump(record)
    limit = LINE_LIMIT // 2
    while len(text.encode()) > LINE_LIMIT:
        if limit < 256:
            return _dump({**_short(record), "clipped": clip(whole, LINE_LIMIT // 8)})
        text = _dump(_clipped(record, limit))
        limit //= 2
    return text


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that take no room, among them the ids that every record bears."""
    return {key: value for key, value in record.items() if len(_dump(value)) <= 256}


def _dump(record: object) -> str:
    text = json.dumps(record, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")


def _clipped(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, Mapping):
        kept = islice(value.items(), _MOST_ITEMS)
        return {clip(str(key), 256): _clipped(item, limit) for key, item in kept} | _dropped(value)
    if isinstance(value, list | tuple):
        return [*(_clipped(item, limit) for item in value[:_MOST_ITEMS]), *_dropped(value).values()]
    return value


def _dropped(value: Sized) -> dict[str, str]:
    """A last entry that says how many are not there."""
    more = len(value) - _MOST_ITEMS
    return {"…": f"[{more} more dropped]"} if more > 0 else {}
