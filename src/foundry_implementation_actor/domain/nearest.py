"""Where a text that does not stand in a file nearly does, and what differs that no eye sees.

Used only to explain a miss: nothing here decides where an edit goes.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import NamedTuple

from foundry_implementation_actor.domain.document import Place, quoted

_LINES_SHOWN = 6
_WIDTH = 160
_FOLDING_LIMIT = 1024 * 1024  # bytes; a miss in a larger file is explained by its longest match only

_LINE_END = re.compile(r"\r\n?|\n")
_ZERO_WIDTH = "\u00ad\u200b-\u200f\u2060\ufeff"
_WIDE_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)

# Each takes one kind of difference away. Line ends come first, so that no other changes the count of lines.
_UNSEEN: Mapping[str, Callable[[str], str]] = {
    "the line ends (CRLF or LF)": lambda text: _LINE_END.sub("\n", text),
    "a byte order mark or a zero-width character": lambda text: re.sub(f"[{_ZERO_WIDTH}]", "", text),
    "a no-break or other special space": lambda text: re.sub(f"[{_WIDE_SPACES}]", " ", text),
    "space at the end of a line": lambda text: re.sub(r"[ \t]+(?=[\r\n]|\Z)", "", text),
    "tabs and spaces": lambda text: re.sub(r"[ \t]+", " ", text),
    "typographic quotes or dashes": lambda text: text.translate(_TYPOGRAPHIC),
    "the Unicode normal form": lambda text: unicodedata.normalize("NFC", text),
}


class Lines:
    """The lines of a file, ended by LF, CRLF or CR, and where an offset lies in them."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._starts = [0, *(end.end() for end in re.finditer(rb"\r\n?|\n", text))]

    def place(self, offset: int) -> Place:
        """The line and column (in characters, both from 1) of a byte offset."""
        line = bisect_right(self._starts, offset)
        before = self._text[self._starts[line - 1] : offset]
        return Place(line, len(_decoded(before)) + 1)

    def shown(self, first: int, count: int) -> str:
        """Some lines as `  <number>: <text>`, what is invisible in them written out; none beyond the file's end."""
        numbers = range(max(first, 1), min(first + min(count, _LINES_SHOWN), len(self._starts) + 1))
        return "\n".join(f"  {number}: {_visible(self.line(number))}" for number in numbers)

    def line(self, number: int) -> str:
        """One line, counted from 1, with its end; empty beyond the file's end."""
        if number > len(self._starts):
            return ""
        end = self._starts[number] if number < len(self._starts) else len(self._text)
        return _decoded(self._text[self._starts[number - 1] : end])


class _Match(NamedTuple):
    """How many of the find text's first (or last) bytes stand in the file, and at which offset."""

    length: int
    at: int


def explain(text: bytes, find: bytes) -> str:
    """Why `find`, which does not stand in `text`, does not: an unseen difference, or how far it matches.

    Several lines; the place is `line:column`, and the file's own lines there follow.
    """
    if not text:
        return "the find text does not stand in the file: the file is empty"
    unseen = _explain_unseen(text, find) if len(text) <= _FOLDING_LIMIT else ""
    return f"the find text does not stand in the file{unseen or _explain_longest(text, find)}"


def _explain_unseen(text: bytes, find: bytes) -> str:
    folded_text, folded_find = (_folded(_decoded(part)) for part in (text, find))
    at = folded_text.find(folded_find) if folded_find.strip() else -1
    if at < 0:
        return ""
    lines = Lines(text)
    line, count = folded_text.count("\n", 0, at) + 1, folded_find.rstrip("\n").count("\n") + 1
    there = "".join(lines.line(number) for number in range(line, line + folded_find.count("\n") + 1))
    kinds = ", ".join(_differing(there, _decoded(find))) or "white space and invisible characters"
    said = f"; it nearly does at line {line}. What differs: {kinds}"
    return f"{said}\nthe file:\n{lines.shown(line, count)}\nthe find text:\n{Lines(find).shown(1, count)}"


def _folded(text: str, leave: str = "") -> str:
    for kind, fold in _UNSEEN.items():
        if kind != leave:
            text = fold(text)
    return text


def _differing(there: str, find: str) -> list[str]:
    """The kinds of difference without whose folding the find text is not in these lines."""
    return [kind for kind in _UNSEEN if _folded(find, kind) not in _folded(there, kind)]


def _explain_longest(text: bytes, find: bytes) -> str:
    head = _longest(text, find, from_end=False)
    tail = _longest(text, find, from_end=True)
    if not find[: head.length].strip() and not find[len(find) - tail.length :].strip():
        return ", nor does its beginning or its end"
    lines = Lines(text)
    if head.length >= tail.length:
        stop = head.at + head.length
        place = lines.place(stop)
        goes_on = f"the file goes on with {_next(text, stop)}, the find text with {_next(find, head.length)}"
        said = f"; its first {head.length} of {len(find)} bytes do, up to {place.line}:{place.column}, where {goes_on}"
        return f"{said}\n{lines.shown(place.line - 2, _LINES_SHOWN)}"
    place = lines.place(tail.at)
    said = f"; its last {tail.length} of {len(find)} bytes do, from {place.line}:{place.column}"
    return f"{said}\n{lines.shown(place.line - 2, _LINES_SHOWN)}"


def _longest(text: bytes, find: bytes, *, from_end: bool) -> _Match:
    """The longest part of `find`, from its beginning or its end, that stands in `text`."""

    def part(length: int) -> bytes:
        return find[len(find) - length :] if from_end else find[:length]

    # What stands in the file stands there with each shorter part too, so that halving finds the longest.
    length = bisect_left(range(1, len(find) + 1), True, key=lambda length: part(length) not in text)
    while 0 < length < len(find) and _inside_character(find, len(find) - length if from_end else length):
        length -= 1
    return _Match(length, text.find(part(length)))


def _inside_character(text: bytes, at: int) -> bool:
    return text[at] & 0xC0 == 0x80


def _next(text: bytes, at: int) -> str:
    rest = _decoded(text[at : at + 4 * 20])[:20]
    return quoted(rest) if rest else "nothing more"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _visible(line: str) -> str:
    """A line with its line end, tabs, special spaces and last spaces written as escapes, shortened."""
    bare = line.removesuffix("\n")
    kept = bare.rstrip(" ")
    text = "".join(char if _is_seen(char) else _escape(char) for char in kept) + r"\x20" * (len(bare) - len(kept))
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _is_seen(char: str) -> bool:
    return char.isprintable() and not unicodedata.combining(char)


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that is no UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
