"""What a session changed: one entry for each path, as git sees it between two trees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

REGULAR, EXECUTABLE, LINK, GITLINK, ABSENT = "100644", "100755", "120000", "160000", "000000"


class Kind(StrEnum):
    """What happened to a path. A move is a deletion and an addition: both sides count."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True)
class Change:
    """One changed path. Modes are git's six octal digits; `blob` is empty for a deletion.

    `path` keeps undecodable bytes as surrogates. `size` is in bytes. `target` is what a link
    points to, and `holds_secret` whether the content holds a secret that the actor knows. What was
    there before is in `mode_before` and `blob_before`, empty for an addition.
    """

    path: str
    kind: Kind
    mode: str
    blob: str
    mode_before: str = ""
    blob_before: str = ""
    size: int = 0
    target: str = ""
    holds_secret: bool = False


def printable(path: str) -> str:
    """A path for people and JSON: control characters and undecodable bytes as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path)
