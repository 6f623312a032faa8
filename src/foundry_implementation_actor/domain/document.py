"""A structured text as plain values, with the place in the file of each of them where there is a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard

KeyPath = tuple[str | int, ...]

_SHOWN = 60
_KINDS = (
    (type(None), "null"),
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (Mapping, "a mapping"),
)


class Place(NamedTuple):
    """A position in a text file; both numbers start at 1."""

    line: int
    column: int


class Wrong(NamedTuple):
    """What is wrong with a value, and what to write instead."""

    what: str
    write: str


class Fault(NamedTuple):
    """Something wrong or doubtful at one key; `place` is None where there is no file."""

    at: KeyPath
    wrong: Wrong
    place: Place | None


class Missing:
    """The value of a key that is not there; null is another thing."""


MISSING = Missing()


class Other(NamedTuple):
    """A YAML scalar that is neither text nor null, such as `a number` written `7`."""

    kind: str
    text: str


@dataclass(frozen=True)
class Document:
    """Plain values (mappings, lists, strings, None, other scalars) and where they stand.

    `places` and `key_places` are empty for values that came from no file. `faults` are what the
    reading of the file itself found, such as a key that is written twice.
    """

    source: str
    root: object
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    key_places: Mapping[KeyPath, Place] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def get(self, at: KeyPath) -> object:
        """The value at a key path, or `MISSING`."""
        value = self.root
        for step in at:
            value = _inside(value, step)
        return value

    def fault(self, at: KeyPath, wrong: Wrong, *, key: bool = False) -> Fault:
        """A fault at a key path, placed at its value, or at the key itself.

        What has no place of its own (a missing key, the inside of an alias) is placed at the
        nearest thing around it that has one.
        """
        if key and at in self.key_places:
            return Fault(at, wrong, self.key_places[at])
        around = (self.places.get(at[:length]) for length in range(len(at), -1, -1))
        return Fault(at, wrong, next((place for place in around if place), None))

    def where(self, fault: Fault) -> str:
        """`source:line:column: key` of a fault, without the parts that it has not."""
        position = f":{fault.place.line}:{fault.place.column}" if fault.place else ""
        key = f": {dotted(fault.at)}" if fault.at else ""
        return f"{self.source}{position}{key}"

    def line(self, fault: Fault) -> str:
        """A fault as one line of text."""
        return f"{self.where(fault)}: {fault.wrong.what}; {fault.wrong.write}"


def _inside(value: object, step: str | int) -> object:
    if isinstance(step, str):
        return value.get(step, MISSING) if isinstance(value, Mapping) else MISSING
    return value[step] if is_list(value) and step < len(value) else MISSING


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a plain value counts as a list."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | Other)


def dotted(at: KeyPath) -> str:
    """A key path as people write it: `components[0].path`."""
    text = ""
    for step in at:
        name = step if isinstance(step, int) or step.replace("_", "").isalnum() else quoted(step)
        text += f"[{name}]" if isinstance(step, int) else f".{name}"
    return text.removeprefix(".")


def quoted(text: str) -> str:
    """A text in quotes on one line, shortened when it is long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def kind(value: object) -> str:
    """What a plain value is, in words."""
    if isinstance(value, Other):
        return f"{value.kind} ({quoted(value.text)[1:-1]})"
    if is_list(value):
        return "a list"
    return next((words for types, words in _KINDS if isinstance(value, types)), f"a {type(value).__name__}")
