"""What a caller asks of the gate, and the reading of it from whatever a caller sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from foundry_implementation_actor.domain.edit import Pair, transmitted
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import BODY_LIMIT, LONGEST_NAME, Target, is_identifier

MODES = ("start", "append", "finish")

TARGET_KEYS = ("plugin", "class")
EDIT_KEYS = (*TARGET_KEYS, "edits", "expect")
_DECLARED = ("bytes", "sections", "sha256")
_BODY_KEYS = (*TARGET_KEYS, "content", "mode", "expect", "section", "offset", *_DECLARED)
_BATCHED_KEYS = (*TARGET_KEYS, "content", "edits", "mode", "expect", *_DECLARED)
_EVERY_KEY = frozenset((*_BODY_KEYS, "edits", "batch"))
_NOT_OF_WHOLE = ("section", "offset", *_DECLARED)
_NOT_OF_STAGED = ("expect", *_DECLARED)


@dataclass(frozen=True)
class Whole:
    """A whole body, in this call."""

    content: bytes


@dataclass(frozen=True)
class Edits:
    """Pairs to apply to the body that stands in the file."""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Assembly:
    """The body that was staged, and what the caller says of it; None and empty when unsaid.

    `last` is one more section that comes with the call itself, `section` and `offset` are its number and offset.
    """

    last: bytes = b""
    section: int | None = None
    offset: int | None = None
    size: int | None = None
    sections: int | None = None
    sha256: str = ""


@dataclass(frozen=True)
class Section:
    """One section to stage: the first one when `first`. Its number or offset, when the caller says it."""

    content: bytes
    first: bool
    section: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Ask:
    """One body to land. `expect` is the digest of the text that the caller has in mind, or empty."""

    target: Target
    body: Whole | Edits | Assembly
    expect: str = ""


@dataclass(frozen=True)
class Stage:
    """One section to keep until its body is finished."""

    target: Target
    section: Section


Wish = Ask | Stage | tuple[Ask, ...]
"""A body, a section, or a batch of bodies that land together."""


def wish(sent: Any) -> Wish:
    """Read what `implement` was sent.

    Raises:
        ActorError: BAD_REQUEST or TOO_LARGE, saying which key is wrong and what to send instead.
    """
    fields = _object(sent, "the input")
    if fields.get("batch") is not None:
        only(fields, ("batch",), "a batch")
        return _batch(fields)
    if fields.get("edits") is not None:
        raise _bad("edits", "belongs to edit; implement takes content")
    found = _body(fields)
    if isinstance(found, Ask):
        _bounded(found)
    only(fields, _BODY_KEYS, "implement")
    return found


def edit_wish(sent: Any) -> Ask:
    """Read what `edit` was sent.

    Raises:
        ActorError: BAD_REQUEST or TOO_LARGE.
    """
    fields = _object(sent, "the input")
    ask = _bounded(Ask(target_of(fields), Edits(pairs_of(fields.get("edits"))), _digest(fields, "expect")))
    only(fields, EDIT_KEYS, "edit")
    return ask


def target_of(fields: Mapping[str, Any]) -> Target:
    """The plugin and class that an input names.

    Raises:
        ActorError: BAD_REQUEST when one is missing or is no bare identifier.
    """
    return Target(bare(fields, "plugin"), bare(fields, "class"))


def bare(fields: Mapping[str, Any], key: str) -> str:
    """The bare identifier under a key.

    Raises:
        ActorError: BAD_REQUEST when it is missing or is none.
    """
    value = fields.get(key)
    if not is_identifier(value):
        said = f"{str(value)[:80]!r} is no bare identifier" if key in fields else "is missing"
        raise _bad(key, f"{said}; give a name of at most {LONGEST_NAME} letters, digits and _, never a path")
    return str(value)


def only(fields: Mapping[Any, Any], known: Sequence[str], what: str) -> None:
    """Refuse a key that nobody reads: a misspelt `expect` would land what it should have held back.

    Args:
        fields: what was sent; a key of another ask whose value is None counts as unsaid.
        known: the keys that are read.
        what: what takes them, for the message.

    Raises:
        ActorError: BAD_REQUEST naming the key, and the one that may have been meant.
    """
    for key in fields:
        if key in known or (key in _EVERY_KEY and fields[key] is None):
            continue
        near = get_close_matches(str(key)[:80], known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise _bad(str(key)[:80], f"is no key of {what}, which takes {', '.join(known) or 'none'}{meant}")


def pairs_of(sent: Any) -> tuple[Pair, ...]:
    """The pairs of an edit: a list of objects with the texts `find` and `replace`.

    Raises:
        ActorError: BAD_REQUEST naming the pair.
    """
    if not isinstance(sent, list | tuple) or not sent:
        raise _bad("edits", 'must be a list of pairs: [{"find": "…", "replace": "…"}]')
    return tuple(_pair(pair, f"edits[{number}]") for number, pair in enumerate(sent, 1))


def _pair(sent: Any, where: str) -> Pair:
    if not isinstance(sent, Mapping) or set(sent) != {"find", "replace"}:
        raise _bad(where, "must be an object with exactly find and replace")
    return Pair(_bytes(sent["find"], f"{where}.find"), _bytes(sent["replace"], f"{where}.replace"))


def _body(fields: Mapping[str, Any]) -> Ask | Stage:
    target, mode = target_of(fields), fields.get("mode")
    if mode is None:
        _unread(fields, _NOT_OF_WHOLE, "only counts for a body in sections, with a mode")
        return Ask(target, Whole(_bytes(fields.get("content"), "content")), _digest(fields, "expect"))
    if mode not in MODES:
        raise _bad("mode", f"must be absent or one of {', '.join(MODES)}")
    if mode == "finish":
        return Ask(target, _assembly(fields), _digest(fields, "expect"))
    _unread(fields, _NOT_OF_STAGED, "only counts with mode=finish")
    return Stage(target, _section(fields, first=mode == "start"))


def _section(fields: Mapping[str, Any], *, first: bool) -> Section:
    content = _bytes(fields.get("content"), "content")
    _fits(len(content), "content")
    section = Section(content, first, _number(fields, "section", 1), _number(fields, "offset"))
    if first and section.section not in {None, 1}:
        raise _bad("section", "must be 1 with mode=start, which begins anew; append the others")
    if first and section.offset:
        raise _bad("offset", "must be 0 with mode=start, which begins anew; append the others")
    return section


def _assembly(fields: Mapping[str, Any]) -> Assembly:
    if fields.get("content") is None:
        _unread(fields, ("section", "offset"), "is of the section that comes with the call, and none came")
    last = b"" if fields.get("content") is None else _bytes(fields["content"], "content")
    return Assembly(
        last, _number(fields, "section", 1), _number(fields, "offset"),
        size=_number(fields, "bytes"), sections=_number(fields, "sections", 1), sha256=_digest(fields, "sha256"),
    )  # fmt: skip


def _unread(fields: Mapping[str, Any], keys: Sequence[str], why: str) -> None:
    """Refuse what would be passed over: a caller who declares a digest has to be able to rely on it."""
    for key in keys:
        if fields.get(key) is not None:
            raise _bad(key, why)


def _batch(fields: Mapping[str, Any]) -> tuple[Ask, ...]:
    sent = fields["batch"]
    if not isinstance(sent, list | tuple) or not sent:
        raise _bad("batch", "must be a list of bodies, each with plugin, class and content, edits or mode=finish")
    asks = tuple(_numbered(item, f"batch[{number}]") for number, item in enumerate(sent, 1))
    if len({ask.target for ask in asks}) < len(asks):
        raise _bad("batch", "names one class twice")
    _fits(sum(map(_sent, asks)), "batch")
    return asks


def _numbered(sent: Any, where: str) -> Ask:
    """One body of a batch; what is wrong with it is told with its number."""
    try:
        return _in_batch(sent, where)
    except ActorError as error:
        place = error.where if where in str(error) else f"{where}.{error.where}"
        raise ActorError(error.code, error.message, hint=error.hint, where=place) from error


def _in_batch(sent: Any, where: str) -> Ask:
    fields = _object(sent, where)
    only(fields, _BATCHED_KEYS, where)
    if fields.get("edits") is not None:
        if fields.get("content") is not None or fields.get("mode") is not None:
            raise _bad(where, "has edits beside content or mode; give one of them")
        return edit_wish(fields)
    found = _body(fields)
    if isinstance(found, Stage):
        raise _bad(f"{where}.mode", "must be absent or finish; stage the sections in calls of their own")
    return found


def _bounded(ask: Ask) -> Ask:
    _fits(_sent(ask), "edits" if isinstance(ask.body, Edits) else "content")
    return ask


def _sent(ask: Ask) -> int:
    """The bytes that came with the call itself."""
    match ask.body:
        case Whole(content):
            return len(content)
        case Edits(pairs):
            return transmitted(pairs)
        case Assembly(last=last):
            return len(last)


def _fits(size: int, where: str) -> None:
    if size > BODY_LIMIT:
        hint = "send a body in sections with mode=start, append and finish; edit takes the changed text only"
        message = f"{size:,} bytes came in one call, at most {BODY_LIMIT:,} are taken"
        raise ActorError(Code.TOO_LARGE, message, hint=hint, where=where)


def _object(sent: Any, where: str) -> Mapping[Any, Any]:
    if not isinstance(sent, Mapping):
        raise _bad(where, f"must be an object, not {type(sent).__name__}")
    return sent


def _bytes(sent: Any, where: str) -> bytes:
    if isinstance(sent, bytes):
        return sent
    if not isinstance(sent, str):
        raise _bad(where, "must be a text" if sent is not None else "is missing")
    try:
        return sent.encode()
    except UnicodeEncodeError as error:
        message = f"holds half of a character (a lone surrogate) at position {error.start}"
        raise _bad(where, message) from error


def _number(fields: Mapping[str, Any], key: str, least: int = 0) -> int | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _bad(key, f"must be a whole number from {least}")
    return value


def _digest(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    text = value.lower() if isinstance(value, str) else ""
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise _bad(key, "must be a SHA-256 in 64 hex digits, as read gives it")
    return text


def _bad(where: str, message: str) -> ActorError:
    return ActorError(Code.BAD_REQUEST, message, where=where)
