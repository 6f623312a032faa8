"""The ledger: one line of JSON for every attempt to land something, and never a growing file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.event import line
from foundry_implementation_actor.domain.json_text import read_json
from foundry_implementation_actor.gate.state import give_to_owner, hold, kept_folder, read_kept, state_folder

LIMIT = 4 * 1024 * 1024
"""Bytes after which the ledger is put aside as `ledger.1.jsonl`, of which one is kept."""

_NAME = "ledger.jsonl"
_OLD = "ledger.1.jsonl"
_LOCK = "ledger.lock"


def append(root: Path, record: Mapping[str, Any], limit: int = LIMIT) -> str:
    """Write one attempt down.

    Returns:
        Why it could not be written; empty when it was. A landing does not depend on it.
    """
    written = line(record).encode() + b"\n"
    try:
        folder = state_folder(root)
        with hold(folder, _LOCK):
            _make_room(folder, len(written), limit)
            _write(folder / _NAME, written)
    except OSError as error:
        return f"the ledger could not be written: {error.strerror}"
    except ActorError as error:
        return f"the ledger could not be written: {error}"
    return ""


def entries(root: Path) -> Iterator[dict[str, Any]]:
    """Every attempt that is still written down, oldest first; a torn line is passed over."""
    folder = kept_folder(root)
    if folder is None:
        return
    for name in (_OLD, _NAME):
        with contextlib.suppress(OSError):
            for raw in read_kept(folder / name).split(b"\n"):
                with contextlib.suppress(ValueError):
                    record = read_json(raw.decode(), "it")
                    if _is_attempt(record):
                        yield record


def _is_attempt(record: Any) -> bool:
    """Whether a line is one that the gate could have written."""
    bodies = record.get("bodies", []) if isinstance(record, dict) else None
    return isinstance(bodies, list) and all(isinstance(body, dict) for body in bodies)


def _make_room(folder: Path, coming: int, limit: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if (folder / _NAME).stat().st_size + coming > limit:
            (folder / _NAME).replace(folder / _OLD)


def _write(path: Path, written: bytes) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0) as file:
        give_to_owner(file.fileno(), path.parent)
        size = file.seek(0, os.SEEK_END)
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            written = b"\n" + written  # a writer was killed within its line
        file.write(written)
