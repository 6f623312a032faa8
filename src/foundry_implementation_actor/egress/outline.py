"""The outline of a JSON text, taken while it passes by: what stands in it down to a depth, without long texts."""

from __future__ import annotations

import json
import re
from typing import Any

LARGEST = 64 * 1024
"""How many bytes an outline may have; a text with a larger one has none."""

_LONGEST_TEXT = 256
_REST_OF_TEXT = rb'(?:[^"\\]++|\\.)*+'
_FLAT = rb'[^"\[\]{}]++|"%b"' % _REST_OF_TEXT
_INSIDE = re.compile(_REST_OF_TEXT, re.DOTALL)
_OUTSIDE = re.compile(rb'[^"\[\]{}]++|["\[\]{}]')
# What is passed over in one stride where nothing is kept: all but lists and objects that hold others.
_BELOW = re.compile(rb"(?:%b|[\[{](?:%b)*+[\]}])*+" % (_FLAT, _FLAT), re.DOTALL)
_QUOTE, _OPENERS, _CLOSERS = b'"', (b"{", b"["), (b"}", b"]")


class Outline:
    """Takes a JSON text piece by piece; memory is bounded by `LARGEST` and one piece.

    Lists and objects below `depth` (the outermost one has depth 1) are `null` in the outline, and strings of
    more than 256 bytes are empty.
    """

    def __init__(self, depth: int) -> None:
        self._most_depth = depth
        self._depth = 0
        self._kept = bytearray()
        self._text: bytearray | None = None
        self._carried = b""
        self._too_large = False

    @property
    def closed(self) -> bool:
        """Whether the outermost list or object has come to its end."""
        return bool(self._kept) and self._depth == 0 and self._text is None

    def feed(self, piece: bytes) -> None:
        """Take in the next bytes of the text."""
        piece, at, self._carried = self._carried + piece, 0, b""
        while at < len(piece):
            at = self._outside(piece, at) if self._text is None else self._inside(self._text, piece, at)
        if len(self._kept) > LARGEST:
            self._too_large = True
            self._kept.clear()

    def value(self) -> dict[str, Any] | None:
        """The outline; None when the text is no JSON object, names a key twice or has too large an outline."""
        try:
            found = _DECODER.decode(self._kept.decode())
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) and not self._too_large else None

    def _outside(self, piece: bytes, at: int) -> int:
        if self._depth > self._most_depth and (below := _BELOW.match(piece, at)) and below.end() > at:
            return below.end()
        found = _OUTSIDE.match(piece, at)
        assert found, "each byte is one of the two kinds"
        token = found[0]
        if token == _QUOTE:
            self._text = bytearray()
        elif token in _OPENERS:
            self._depth += 1
            self._keep(token if self._depth <= self._most_depth else b"null", self._most_depth + 1)
        elif token in _CLOSERS:
            self._keep(token, self._most_depth)
            self._depth -= 1
        else:
            self._keep(token, self._most_depth)
        return found.end()

    def _inside(self, text: bytearray, piece: bytes, at: int) -> int:
        """Go on in a string; its end, or what is left of the piece, is the next place."""
        found = _INSIDE.match(piece, at)
        assert found, "no byte is one as well"
        if len(text) <= _LONGEST_TEXT:
            text += found[0][: _LONGEST_TEXT + 1]
        end = found.end()
        if end == len(piece):
            return end
        if piece[end : end + 1] != _QUOTE:  # a backslash whose letter is in the next piece
            self._carried = piece[end:]
            return len(piece)
        self._keep(b'"%b"' % bytes(text if len(text) <= _LONGEST_TEXT else b""), self._most_depth)
        self._text = None
        return end + 1

    def _keep(self, token: bytes, depth: int) -> None:
        if self._depth <= depth and not self._too_large:
            self._kept += token


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are each named once: of two, a server takes one, and who knows which."""
    named = [key for key, _ in pairs if key]  # one that was too long is empty here
    if len(set(named)) < len(named):
        raise ValueError("a key stands twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
