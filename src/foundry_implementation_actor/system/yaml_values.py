"""YAML or JSON text to built-in values, for files in which numbers and booleans mean something.

A plain scalar is a number or a boolean where JSON would read it so. Anything else is the text that
stands there: `yes`, `0012`, `1:30` and `2026-01-02` are what their author sees.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from foundry_implementation_actor.domain.document import Document, Other, is_list
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.json_text import MAX_DIGITS, read_json
from foundry_implementation_actor.system.yaml_compose import compose

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LIKE_JSON = re.compile(r"\s*\{\s*[\"}]")


def read_values(text: str, source: str) -> Document:
    """Read one document; the root of a text that holds none is `MISSING`, and JSON has no places.

    Args:
        text: YAML, or JSON, which need not be YAML too (tabs, halves of surrogate pairs).
        source: what messages call the text, usually a file name.

    Raises:
        ActorError: BAD_REQUEST, each error with line and column: neither YAML nor JSON, a key that is
            written twice, a tag, or more than `yaml_compose` reads.
    """
    if not text.lstrip().startswith("{"):
        return _plain(compose(text, source))
    try:
        return Document(source, read_json(text, "the text"))
    except ValueError as error:
        return _plain(_flow_mapping(text, source, error))


def _flow_mapping(text: str, source: str, not_json: ValueError) -> Document:
    """The text as YAML; when it is none either, the error of the language it was meant to be in."""
    try:
        return compose(text, source)
    except ActorError:
        cause = not_json.__cause__
        if not _LIKE_JSON.match(text):
            raise
        if isinstance(cause, json.JSONDecodeError):
            where = f"{source}:{cause.lineno}:{cause.colno}"
            raise ActorError(Code.BAD_REQUEST, f"not readable as JSON: {cause.msg}", where=where) from None
        raise ActorError(Code.BAD_REQUEST, str(not_json), where=source) from None


def _plain(document: Document) -> Document:
    if document.faults:
        raise ActorError(Code.BAD_REQUEST, "\n".join(document.line(fault) for fault in document.faults))
    return replace(document, root=_built_in(document.root))


def _built_in(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _built_in(item) for key, item in value.items()}
    if isinstance(value, Other):
        return _scalar(value)
    return [_built_in(item) for item in value] if is_list(value) else value


def _scalar(other: Other) -> object:
    word = other.text.lower()
    if word in {"true", "false"}:
        return word == "true"
    number = _NUMBER.fullmatch(other.text)
    if number is None or len(other.text) > MAX_DIGITS:
        return other.text
    if not any(number.groups()):
        return int(other.text)
    read = float(other.text)
    return read if math.isfinite(read) else other.text
