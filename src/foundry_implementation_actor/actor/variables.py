"""How one environment variable is declared and how its text is read.

A reader takes the text and returns the value, or raises `ValueError` with the rest of a sentence that
starts with the variable's name. No message repeats a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from foundry_implementation_actor.domain.document import Wrong
from foundry_implementation_actor.egress.allowed import Allowed

Read = Callable[[str], Any]

_SHOWN = 60
_REGISTRY = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, its default as text, what it is for, and its reader."""

    name: str
    default: str
    what: str
    secret: bool
    read: Read

    def value_in(self, environ: Mapping[str, str], key: str) -> dict[str, Any]:
        """`{key: value}`, or nothing when the variable is not set or its reader says it is empty.

        Raises:
            ValueError: the value cannot be used.
        """
        text = environ.get(self.name)
        value = None if text is None else self.read(text)
        return {} if value is None else {key: value}


def count(most: int) -> Read:
    """A positive whole number of at most `most`, in ASCII digits."""

    def read(text: str) -> int:
        # The length is bounded first: Python refuses to turn thousands of digits into a number.
        if not re.fullmatch(r"[0-9]{1,18}", text.strip()) or not 1 <= int(text) <= most:
            raise ValueError(f"must be a positive integer of at most {most}, not {shown(text)}")
        return int(text)

    return read


def dollars(text: str) -> float | None:
    """A positive decimal number of US dollars below ten million; empty means that nothing was given."""
    line = text.strip()
    if line and not (re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", line) and float(line) > 0):
        raise ValueError(f"must be a positive number of US dollars such as 2.50, not {shown(text)}")
    return float(line) if line else None


def choice(*words: str) -> Read:
    """One of these words; empty means that nothing was chosen."""

    def read(text: str) -> str | None:
        if text and text not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {shown(text)}")
        return text or None

    return read


def switch(text: str) -> bool | None:
    """`on` or `off`; empty means that nothing was chosen."""
    word = choice("on", "off")(text)
    return None if word is None else word == "on"


def hosts(text: str) -> Allowed | None:
    """A comma list of hosts; empty means that none is given."""
    line = plain(text)
    return Allowed.read(line) if line else None


def plain(text: str) -> str | None:
    """A text on one line; empty means that nothing was given."""
    if not text.isprintable():
        raise ValueError(f"must be one line of text, not {shown(text)}")
    return text.strip() or None


def unchanged(text: str) -> str | None:
    """The text as it is, whatever bytes it holds; empty means that nothing was given."""
    return text or None


def location(text: str) -> Path | None:
    """A path, made absolute from the working directory; `~` is the user's home."""
    line = plain(text)
    return Path(os.path.abspath(Path(line).expanduser())) if line else None  # noqa: PTH100 - resolve() would follow links that may not exist yet


def secret(text: str) -> str | None:
    """A secret without the white space that a file or a shell leaves around it."""
    value = text.strip()
    if not value.isprintable() or " " in value:
        raise ValueError("holds white space or control characters inside; set it to the bare token")
    return value or None


def address(*schemes: str) -> Read:
    """An absolute URL with one of these schemes, without a login, query or fragment; no `/` at its end."""

    def read(text: str) -> str | None:
        line = plain(text)
        if line is None:
            return None
        try:
            parts = urlsplit(line)
            usable = parts.scheme in schemes and _has_place(parts.scheme, parts.hostname, parts.path)
            port_is_one = parts.port is None or parts.port > 0
        except ValueError as error:
            raise ValueError("is not a URL") from error
        if "@" in parts.netloc:
            raise ValueError("holds a login; give the token in its own variable and leave only the address here")
        if set("?# ") & set(line):
            # Not shown: what stands in a query is often a token.
            raise ValueError("must be an address without a query, a fragment or spaces")
        if not usable or not port_is_one:
            wanted = " or ".join(f"{scheme}://" for scheme in schemes)
            raise ValueError(f"must be an absolute address starting with {wanted}, not {shown(line)}")
        return line.rstrip("/")

    return read


def registry(text: str) -> str | None:
    """A registry as it stands in an image reference: `host[:port][/path]` in lower case, without a scheme."""
    line = (plain(text) or "").rstrip("/")
    if line and not _REGISTRY.fullmatch(line):
        raise ValueError(f"must be host[:port][/path] in lower case without a scheme, not {shown(line)}")
    return line or None


def shown(text: str) -> str:
    """A value as it stands in a message: quoted, with what is too long cut off."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def refused(name: str, said: str) -> Wrong:
    """A reader's refusal of the variable of this name, apart from what to do about it."""
    if said.startswith("must be "):
        legal = said.removeprefix("must be ").partition(", not ")[0]
        return Wrong(f"{name} {said}", f"set {name} to {legal}, or unset it")
    what, _, write = said.partition("; ")
    return Wrong(f"{name} {what}", write or f"correct or unset {name}")


def _has_place(scheme: str, hostname: str | None, path: str) -> bool:
    if scheme == "file":
        return not hostname and path.startswith("/")
    return bool(hostname)
