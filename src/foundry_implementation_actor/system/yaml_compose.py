"""YAML text to plain values with places, in one pass over the parser's events.

Events instead of the library's own node tree: no recursion, so nesting is a number to compare; an
alias is counted at the size of what it repeats, so a file that explodes is refused before it does;
no tag ever builds an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import yaml

from foundry_implementation_actor.domain.document import (
    MISSING,
    Document,
    Fault,
    KeyPath,
    Other,
    Place,
    Wrong,
    quoted,
)
from foundry_implementation_actor.domain.error import ActorError, Code, ConfigError
from foundry_implementation_actor.system.yaml_words import in_words

MAX_VALUES = 10_000
MAX_DEPTH = 32

_BOM = "\ufeff"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = (None, "!", f"{_TAG}str", f"{_TAG}seq", f"{_TAG}map")
_KINDS = {"int": "a number", "float": "a number", "bool": "a boolean", "timestamp": "a date"}


def decoded(content: bytes, source: str) -> str:
    """A file's text, without a byte order mark.

    Raises:
        ConfigError: it is not UTF-8; `where` is the first byte that is not.
    """
    if content.startswith(_UTF_16):
        raise ConfigError("the file is UTF-16", hint="save it as UTF-8", where=f"{source}:1:1")
    try:
        return content.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        what = f"byte {content[error.start]:#04x} is not UTF-8"
        raise ConfigError(what, hint="save the file as UTF-8", where=f"{source}:{line}:{column}") from None


def compose(text: str, source: str) -> Document:
    """Read one YAML document; the root of a text that holds none is `MISSING`.

    Args:
        text: the file's content, without a byte order mark.
        source: the name of the file for messages.

    Raises:
        ActorError: BAD_REQUEST, with line and column: no YAML, more than one document, deeper than
            `MAX_DEPTH`, or more than `MAX_VALUES` values with every alias written out.
    """
    composer = _Composer(text, source)
    while (event := composer.next_event()) is not None:
        composer.take(event)
    return Document(source, composer.root, composer.places, composer.key_places, tuple(composer.faults))


class _Mark(Protocol):
    line: int
    column: int


class _Anchor(NamedTuple):
    value: object
    size: int


@dataclass
class _Frame:
    """One collection that is still open; `key` is the one that waits for its value."""

    container: dict[str, object] | list[object]
    path: KeyPath
    anchor: str | None
    size_before: int
    key: str | None = None


class _Composer:
    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._text = text
        self.root: object = MISSING
        self.places: dict[KeyPath, Place] = {}
        self.key_places: dict[KeyPath, Place] = {}
        self.faults: list[Fault] = []
        self._anchors: dict[str, _Anchor] = {}
        self._frames: list[_Frame] = []
        self._size = 0
        self._loader = self._open(text)
        self._events: Iterator[yaml.Event] = iter(self._loader.get_event, None)
        self._resolve: Callable[..., str] = self._loader.resolve

    def _open(self, text: str) -> yaml.SafeLoader:
        try:
            return yaml.SafeLoader(text)
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
            raise self._refusal(place, f"a control character ({error.character:#04x})", "remove it") from None

    def next_event(self) -> yaml.Event | None:
        try:
            return next(self._events, None)
        except yaml.MarkedYAMLError as error:
            said = in_words(error, self._text)
            mark = (error.context_mark if said.at_start else None) or error.problem_mark
            raise self._refusal(_place(mark), f"not readable as YAML: {said.what}", said.write) from None
        except (ValueError, OverflowError):  # the scanner lets numbers of escapes and directives through unchecked
            place = _place(self._loader.get_mark())
            raise self._refusal(place, "not readable as YAML: a number out of range", "correct the escape") from None

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent() if self.root is not MISSING:
                raise self._refusal(_place(event.start_mark), "a second YAML document", "keep one, without `---`")
            case yaml.ScalarEvent():
                self._take_scalar(event)
            case yaml.AliasEvent():
                self._take_alias(event)
            case yaml.CollectionStartEvent():
                self._take_start(event)
            case yaml.CollectionEndEvent():
                self._take_end()

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        self._grow(event, 1)
        if self._wants_key():
            self._take_key(event)
            return
        value = self._scalar(event)
        self._note_tag(event, self._put(value, event))
        if event.anchor:
            self._anchors[event.anchor] = _Anchor(value, 1)

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        if not event.implicit[0] or event.tag is not None:
            return event.value
        tag = self._resolve(yaml.ScalarNode, event.value, event.implicit).removeprefix(_TAG)
        if tag == "null":
            return None
        return Other(_KINDS[tag], event.value) if tag in _KINDS else event.value

    def _take_key(self, event: yaml.ScalarEvent) -> None:
        frame = self._frames[-1]
        path = (*frame.path, event.value)
        place = _place(event.start_mark)
        if event.value in frame.container:
            first = self.key_places[path].line
            wrong = Wrong(f"the key is written twice (first in line {first})", "keep one of the two")
            self.faults.append(Fault(path, wrong, place))
        self.key_places[path] = place
        frame.key = event.value

    def _take_alias(self, event: yaml.AliasEvent) -> None:
        anchor = self._anchors.get(event.anchor or "")
        if anchor is None:
            what = f"the alias *{event.anchor} names no anchor that was finished before it"
            raise self._refusal(_place(event.start_mark), what, "write the value out")
        self._grow(event, anchor.size)
        self._no_key(event)
        self._put(anchor.value, event)

    def _take_start(self, event: yaml.CollectionStartEvent) -> None:
        size = self._size
        self._grow(event, 1)
        self._no_key(event)
        if len(self._frames) >= MAX_DEPTH:
            raise self._refusal(_place(event.start_mark), f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        container: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        path = self._put(container, event)
        self._note_tag(event, path)
        self._frames.append(_Frame(container, path, event.anchor, size))

    def _take_end(self) -> None:
        frame = self._frames.pop()
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchor(frame.container, self._size - frame.size_before)

    def _put(self, value: object, event: yaml.Event) -> KeyPath:
        path: KeyPath = ()
        if not self._frames:
            self.root = value
        else:
            frame = self._frames[-1]
            if isinstance(frame.container, list):
                path = (*frame.path, len(frame.container))
                frame.container.append(value)
            elif frame.key is not None:
                path = (*frame.path, frame.key)
                frame.container[frame.key] = value
                frame.key = None
        self.places[path] = _place(event.start_mark)
        return path

    def _wants_key(self) -> bool:
        return bool(self._frames) and isinstance(self._frames[-1].container, dict) and self._frames[-1].key is None

    def _no_key(self, event: yaml.Event) -> None:
        if self._wants_key():
            what = "a mapping, a list or an alias stands where a key belongs"
            raise self._refusal(_place(event.start_mark), what, "write a word as the key, or quote the value")

    def _note_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, path: KeyPath) -> None:
        if event.tag not in _PLAIN_TAGS:
            wrong = Wrong(f"the tag {quoted(event.tag)} is not read", "write the value without a tag")
            self.faults.append(Fault(path, wrong, _place(event.start_mark)))

    def _grow(self, event: yaml.Event, size: int) -> None:
        self._size += size
        if self._size > MAX_VALUES:
            what = f"more than {MAX_VALUES:,} values, each alias counted as what it repeats"
            raise self._refusal(_place(event.start_mark), what, "shorten the file")

    def _refusal(self, place: Place, what: str, write: str) -> ActorError:
        return ActorError(Code.BAD_REQUEST, what, hint=write, where=f"{self.source}:{place.line}:{place.column}")


def _place(mark: _Mark | None) -> Place:
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
