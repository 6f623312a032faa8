"""The script of the scripted engine: its shape, checked with the line and column of each error.

The format is described in docs/script.md. Reading the file is the caller's; nothing is touched here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door

FORMAT = "foundry-implementation-actor/script/v1"


@dataclass(frozen=True)
class ScriptedSession:
    """The steps of one session, and the orders it answers; None matches any."""

    steps: tuple[dict[str, Any], ...]
    door: Door | None = None
    task: str | None = None
    remediation: bool | None = None

    def answers(self, door: Door, task: str, *, remediation: bool) -> bool:
        """Whether this session is for such an order."""
        return self.door in {None, door} and self.task in {None, task} and self.remediation in {None, remediation}


@dataclass(frozen=True)
class Script:
    """The sessions of a script, in its order."""

    sessions: tuple[ScriptedSession, ...]

    def session_for(self, door: Door, task: str, *, remediation: bool) -> ScriptedSession | None:
        """The first session that answers such an order, or None."""
        return next((s for s in self.sessions if s.answers(door, task, remediation=remediation)), None)


def read_script(text: str, where: str) -> Script:
    """Check a script's text and read it; `where` is what errors call it, usually its file name.

    Raises:
        ActorError: BAD_REQUEST with every error of the script, each as `where:line:column: …`.
    """
    raw = _parse(text, where)
    wrong = list(_Shape(where).check(raw))
    if wrong:
        raise ActorError(Code.BAD_REQUEST, "\n".join(wrong))
    return Script(tuple(_session(item) for item in raw["sessions"]))


def _parse(text: str, where: str) -> Any:
    try:
        return YAML(typ="rt", pure=True).load(StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise ActorError(Code.BAD_REQUEST, f"not YAML: {error.problem}", where=place) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ActorError(Code.BAD_REQUEST, f"not YAML: {error}", where=where) from error


def _session(item: dict[str, Any]) -> ScriptedSession:
    door = item.get("door")
    steps = tuple(_plain(step) for step in item["steps"])
    return ScriptedSession(steps, Door(door) if door else None, item.get("task"), item.get("remediation"))


def _plain(value: Any) -> Any:
    """The same value in built-in types, without the parser's positions."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None if value is None else str(value)


def _is_text(value: object) -> str:
    return "" if isinstance(value, str) else "a text"


def _is_path(value: object) -> str:
    return "" if isinstance(value, str) and value and "\0" not in value else "a path"


def _is_true(value: object) -> str:
    return "" if value is True else "true"


def _is_object(value: object) -> str:
    return "" if isinstance(value, dict) else "an object"


def _is_whole(value: object) -> str:
    return "" if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "a whole number from 0"


def _is_base64(value: object) -> str:
    try:
        base64.b64decode(value if isinstance(value, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        return "a base64 text"
    return ""


def _fields(required: str, optional: str = "") -> Callable[[object], str]:
    """A check for an object with exactly these keys, each a text unless it is a result's number."""
    must, may = set(required.split()), set(optional.split())

    def check(value: object) -> str:
        if isinstance(value, dict) and must <= set(value) <= must | may and (may or _all_texts(value)):
            return ""
        return "an object with " + " and ".join(f"`{key}`" for key in (required or optional).split())

    return check


def _all_texts(value: dict[str, Any]) -> bool:
    return all(isinstance(item, str) for item in value.values())


# What each step is given; a check says what it should have been, or nothing when it is right.
STEPS: dict[str, Callable[[object], str]] = {
    "say": _is_text,
    "write": _fields("path content"),
    "edit": _fields("path find replace"),
    "delete": _is_path,
    "move": _fields("from to"),
    "shell": _is_text,
    "answer": _is_object,
    "result": _fields("", "text subtype is_error turns cost_usd input_tokens output_tokens api_error_status"),
    "silence": _is_true,
    "hang_after_result": _is_true,
    "exit": _is_whole,
    "raw": _is_text,
    "raw_base64": _is_base64,
    "flood": _is_whole,
    "stderr": _is_text,
}

_SESSION_KEYS = ("door", "task", "remediation", "steps")


class _Shape:
    """Walks a parsed script and says what is wrong, each time with its place."""

    def __init__(self, where: str) -> None:
        self._where = where

    def check(self, raw: Any) -> Iterator[str]:
        if not isinstance(raw, dict):
            yield f"{self._where}:1:1: a script is a mapping that starts with `script: {FORMAT}`"
            return
        if raw.get("script") != FORMAT:
            yield self._say(raw, "script", f"write `script: {FORMAT}`")
        sessions = raw.get("sessions")
        if not isinstance(sessions, list) or not sessions:
            yield self._say(raw, "sessions", "must be a list with at least one session")
            return
        for number, session in enumerate(sessions, 1):
            yield from self._session(sessions, number, session)

    def _session(self, sessions: Any, number: int, session: Any) -> Iterator[str]:
        name = f"session {number}"
        if not isinstance(session, dict) or not isinstance(session.get("steps"), list):
            yield self._say(sessions, number - 1, "must be a mapping with a list of `steps`", name)
            return
        for key in session:
            if key not in _SESSION_KEYS:
                yield self._say(session, key, f"is not known; known are {', '.join(_SESSION_KEYS)}", f"{name}: {key}")
        if session.get("door") not in {None, *Door}:
            yield self._say(session, "door", f"must be one of {', '.join(Door)}", f"{name}: door")
        if not isinstance(session.get("task", ""), str):
            yield self._say(session, "task", "must be a task id; quote it", f"{name}: task")
        if not isinstance(session.get("remediation", False), bool):
            yield self._say(session, "remediation", "must be true or false", f"{name}: remediation")
        for at, step in enumerate(session["steps"]):
            yield from self._step(session["steps"], at, step, f"{name}, step {at + 1}")

    def _step(self, steps: Any, at: int, step: Any, name: str) -> Iterator[str]:
        if not isinstance(step, dict) or len(step) != 1:
            yield self._say(steps, at, "must be a mapping with one key, the kind of step", name)
            return
        [(kind, given)] = step.items()
        check = STEPS.get(kind)
        wanted = check(given) if check else ""
        if check is None:
            yield self._say(step, kind, f"{kind!r} is no kind of step; known are {', '.join(STEPS)}", name)
        elif wanted:
            yield self._say(step, kind, f"`{kind}` must be given {wanted}", name)

    def _say(self, holder: Any, key: Any, message: str, name: str = "") -> str:
        return f"{self._where}:{_place(holder, key)}: {name or key}: {message}"


def _place(holder: Any, key: Any) -> str:
    """`line:column`, counted from 1, of a key or an item; of its holder when it is not there."""
    positions = holder.lc
    at = (positions.data or {}).get(key, (positions.line, positions.col))
    return f"{at[0] + 1}:{at[1] + 1}"
