"""Exact edits on bytes: find/replace pairs that each stand once, all of them or none (CONTRACT 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foundry_implementation_actor.domain.nearest import Lines, explain

COUNT_LIMIT = 1_000
"""An ambiguous text is counted up to here."""

_LINES_NAMED = 12
_LINES_SHOWN = 3
_EARLIER = (
    "\nit stood once in the file before this call: an earlier edit of the call changed that, "
    "and each edit sees what those before it left"
)


class Pair(NamedTuple):
    """What to find and what to put in its place; both literal, in the file's own bytes."""

    find: bytes
    replace: bytes


@dataclass(frozen=True)
class Unapplied:
    """Why nothing was applied: the first wrong pair's number (from 1; 0 when there is no pair) and the reason.

    The reason may have several lines, with lines of the file in them.
    """

    number: int
    of: int
    reason: str

    def __str__(self) -> str:
        which = f"edit {self.number} of {self.of}: " if self.number else ""
        return f"nothing was applied; {which}{self.reason}"


def transmitted(pairs: Sequence[Pair]) -> int:
    """The bytes that a caller sent: every find and every replace. The ceiling counts these, not the file."""
    return sum(len(pair.find) + len(pair.replace) for pair in pairs)


def edited(content: bytes, pairs: Sequence[Pair]) -> bytes | Unapplied:
    """The content with each pair applied, in order, to the text that the pairs before it left.

    Bytes that no pair names stay as they are: line ends, byte order mark and a missing last newline
    too. A find text that overlaps itself counts each place it starts at (`aa` stands in `aaa` twice).
    """
    if not pairs:
        return Unapplied(0, 0, "there is no edit; give at least one pair of find and replace")
    text = content
    for number, (find, replace) in enumerate(pairs, 1):
        reason = _wrong(text, find)
        if reason:
            stood = number > 1 and find != b"" and len(_starts(content, find)) == 1
            return Unapplied(number, len(pairs), reason + (_EARLIER if stood else ""))
        text = text.replace(find, replace)
    return text


def _wrong(text: bytes, find: bytes) -> str:
    """Why the find text cannot be replaced, empty when it can."""
    if not find:
        return "the find text is empty; give the text that is to be replaced"
    starts = _starts(text, find)
    if not starts:
        return explain(text, find)
    return _ambiguous(text, starts) if len(starts) > 1 else ""


def _starts(text: bytes, find: bytes) -> list[int]:
    """Where the find text starts, overlapping places too, up to one more than the limit."""
    starts: list[int] = []
    at = text.find(find)
    while at >= 0 and len(starts) <= COUNT_LIMIT:
        starts.append(at)
        at = text.find(find, at + 1)
    return starts


def _ambiguous(text: bytes, starts: Sequence[int]) -> str:
    lines = Lines(text)
    count = str(len(starts)) if len(starts) <= COUNT_LIMIT else f"more than {COUNT_LIMIT:,}"
    numbers = list(dict.fromkeys(lines.place(at).line for at in starts))
    named = ", ".join(str(number) for number in numbers[:_LINES_NAMED]) + (", …" if len(numbers) > _LINES_NAMED else "")
    where = f"in line{'s' if len(numbers) > 1 else ''} {named}"
    shown = "\n".join(lines.shown(number, 1) for number in numbers[:_LINES_SHOWN])
    return f"the find text stands {count} times, {where}; take in more of the text around the one you mean\n{shown}"
