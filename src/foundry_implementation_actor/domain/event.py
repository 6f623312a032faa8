"""Event records: one JSON object a line, never above the line limit of the log store.

The store rejects a whole line over its limit instead of trimming it, so the bound is kept here and
what is dropped is counted in the record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LINE_LIMIT = 65_536

_ROOM_FOR_COUNT = 64


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
    whole = _dump(record)
    limit = LINE_LIMIT // 2
    while len(whole.encode("utf-8", "replace")) > LINE_LIMIT:
        whole = _dump(_clipped(record, limit))
        limit //= 2
        if limit < 256:
            return _dump({"event": record.get("event"), "clipped": clip(_dump(record), LINE_LIMIT // 8)})
    return whole


def _dump(record: object) -> str:
    text = json.dumps(record, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")


def _clipped(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, Mapping):
        return {clip(str(key), 256): _clipped(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clipped(item, limit) for item in value]
    return value
