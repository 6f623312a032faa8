"""The unit that the landing gate lands: a class in a plugin, named, never a path (CONTRACT 8)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

BODY_LIMIT = 8_192
"""Bytes of content in one call, in UTF-8."""

LONGEST_NAME = 120
"""Characters of a plugin's or class's name: the two together, with what the gate adds, are names of files."""

_IDENTIFIER = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}")


@dataclass(frozen=True)
class Target:
    """A plugin and a class; both bare identifiers, so that nothing path-shaped can be asked for."""

    plugin: str
    class_: str

    def __str__(self) -> str:
        return f"{self.plugin}.{self.class_}"


def is_identifier(text: object) -> bool:
    """Whether a plugin or class may be called this."""
    return isinstance(text, str) and _IDENTIFIER.fullmatch(text) is not None


@dataclass(frozen=True)
class Place:
    """The one file that a target lives in.

    `path` is relative to the app's root, with `/`. `module` is the dotted module (Python) or the
    namespace (PHP) that the location dictates. `is_test` says that it lies in the test tree.
    `own_test` is the path of the class's own test, empty when there is none.
    """

    target: Target
    path: str
    module: str
    is_test: bool
    own_test: str = ""


@dataclass(frozen=True)
class Candidate:
    """A body before it lands, beside the bytes that it would replace.

    `beside` holds the other bodies of a batch by their paths: judged in place together with it.
    """

    place: Place
    content: bytes
    original: bytes
    beside: dict[str, bytes] = field(default_factory=dict)


def digest(content: bytes) -> str:
    """SHA-256 of a body, hex: what `read` returns and `expect` names."""
    return hashlib.sha256(content).hexdigest()
