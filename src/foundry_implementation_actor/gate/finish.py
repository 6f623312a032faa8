"""A `finish` that is asked again: it joins the one that is running, or gets the answer that was given."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.state import (
    hold,
    hold_now,
    kept_folder,
    kept_json,
    state_folder,
    told,
    write_durably,
)

_FOLDER = "finish"


@dataclass(frozen=True)
class Given:
    """The answer that a finish gave. `token` is its own; `digest` is that of the body that was judged."""

    token: str
    digest: str
    landed: bool
    answer: Mapping[str, Any]


class Finishes:
    """What became of the last finish of each class of an app."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def turn(self, target: Target, joining: Callable[[], None]) -> Iterator[Given | None]:
        """Be the only one that finishes this class.

        Gives the answer that another one gave while this one waited for it, or None. `joining` is
        called when there is another one to wait for.
        """
        folder = state_folder(self._root, _FOLDER)
        lock = f"{target}.lock"
        before = self.last(target)
        with hold_now(folder, lock) as free:
            if free:
                yield None
                return
        joining()
        with hold(folder, lock):
            now = self.last(target)
            yield now if now and (before is None or now.token != before.token) else None

    def last(self, target: Target) -> Given | None:
        """The last answer that a finish of this class gave, if it is still known."""
        folder = kept_folder(self._root, _FOLDER)
        try:
            given = Given(**kept_json(folder / f"{target}.json")) if folder else None
        except (OSError, ValueError, TypeError):
            return None
        whole = given is not None and isinstance(given.answer, Mapping) and isinstance(given.answer.get("ok"), bool)
        return given if whole else None

    def give(self, target: Target, digest: str, answer: Mapping[str, Any], *, landed: bool) -> None:
        """Remember an answer for whoever asks again; that it cannot be remembered changes no answer."""
        given = {"token": secrets.token_hex(8), "digest": digest, "landed": landed, "answer": dict(answer)}
        with contextlib.suppress(OSError):
            write_durably(state_folder(self._root, _FOLDER) / f"{target}.json", json.dumps(given).encode())

    def recover(self) -> list[str]:
        """Remove what a killed process left while it remembered an answer; says what, a line for each."""
        folder, said = kept_folder(self._root, _FOLDER), []
        for aside in sorted(folder.glob(".*.new")) if folder else ():
            target = aside.name.removeprefix(".").removesuffix(".json.new")
            with hold_now(aside.parent, f"{target}.lock") as free:
                if free:
                    aside.unlink(missing_ok=True)
                    said.append(f"{told(self._root, aside)}: removed, it was never finished")
        return said
