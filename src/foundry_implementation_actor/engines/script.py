"""The script of the scripted engine: its shape, checked with the line and column of each error.

The format is described in docs/script.md. Reading the file is the caller's; nothing is touched here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from foundry_implementation_actor.domain.document import Document, KeyPath, Wrong
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.engines.port import GATE_TOOLS, SessionOrder
from foundry_implementation_actor.system.yaml_values import read_values

FORMAT = "foundry-implementation-actor/script/v1"


@dataclass(frozen=True)
class ScriptedSession:
    """The steps of one session, and the orders it answers; None matches any."""

    steps: tuple[dict[str, Any], ...]
    door: Door | None = None
    task: str | None = None
    remediation: bool | None = None
    attempt: int | None = None

    def answers(self, order: SessionOrder) -> bool:
        """Whether this session is for such an order."""
        chosen = (self.door, self.task, self.remediation, self.attempt)
        asked = (order.door, order.task_id, order.remediation, order.attempt)
        return all(mine in {None, theirs} for mine, theirs in zip(chosen, asked, strict=True))


@dataclass(frozen=True)
class Script:
    """The sessions of a script, in its order, and what errors call it."""

    sessions: tuple[ScriptedSession, ...]
    where: str = ""

    def session_for(self, order: SessionOrder) -> ScriptedSession | None:
        """The first session that answers such an order, or None."""
        return next((session for session in self.sessions if session.answers(order)), None)


def read_script(text: str, where: str) -> Script:
    """Check a script's text and read it; `where` is what errors call it, usually its file name.

    Raises:
        ActorError: BAD_REQUEST with every error of the script, each as `where:line:column: …`.
    """
    document = read_values(text, where)
    wrong = list(_Shape(document).check(document.root))
    if wrong:
        raise ActorError(Code.BAD_REQUEST, "\n".join(wrong))
    sessions = document.get(("sessions",))
    assert isinstance(sessions, list), "a script without errors has its sessions"
    return Script(tuple(_session(item) for item in sessions), where)


def _session(item: dict[str, Any]) -> ScriptedSession:
    door = item.get("door")
    rest = (item.get(key) for key in ("task", "remediation", "attempt"))
    return ScriptedSession(tuple(item["steps"]), Door(door) if door else None, *rest)


def _is_text(value: object) -> str:
    return "" if isinstance(value, str) else "a text"


def _is_path(value: object) -> str:
    return "" if isinstance(value, str) and value and "\0" not in value else "a path"


def _is_gate_call(value: object) -> str:
    if isinstance(value, dict) and set(value) == {"tool", "arguments"}:
        tool, arguments = value["tool"], value["arguments"]
        if tool in GATE_TOOLS and isinstance(arguments, dict):
            return ""
    return f"`tool` ({', '.join(GATE_TOOLS)}) and an object of `arguments`"


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
    "gate": _is_gate_call,
    "result": _fields("", "text subtype is_error turns cost_usd input_tokens output_tokens api_error_status"),
    "silence": _is_true,
    "hang_after_result": _is_true,
    "exit": _is_whole,
    "raw": _is_text,
    "raw_base64": _is_base64,
    "flood": _is_whole,
    "stderr": _is_text,
}

# Which orders a session answers; each may be left out.
_CHOICES: dict[str, tuple[Callable[[object], bool], str]] = {
    "door": (lambda value: value in (None, *Door), f"one of {', '.join(Door)}"),
    "task": (lambda value: value is None or isinstance(value, str), "a task id; quote it"),
    "remediation": (lambda value: value is None or isinstance(value, bool), "true or false"),
    "attempt": (lambda value: value is None or (value != 0 and not _is_whole(value)), "a whole number from 1"),
}
_SESSION_KEYS = (*_CHOICES, "steps")


class _Shape:
    """Walks a script and says what is wrong, each time with its place."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def check(self, raw: object) -> Iterator[str]:
        if not isinstance(raw, dict):
            yield self._say((), "", f"a script is a mapping that starts with `script: {FORMAT}`")
            return
        if raw.get("script") != FORMAT:
            yield self._say(("script",), "script", f"write `script: {FORMAT}`")
        sessions = raw.get("sessions")
        if not isinstance(sessions, list) or not sessions:
            yield self._say(("sessions",), "sessions", "must be a list with at least one session")
            return
        for at, session in enumerate(sessions):
            yield from self._session(("sessions", at), session, f"session {at + 1}")

    def _session(self, at: KeyPath, session: object, name: str) -> Iterator[str]:
        if not isinstance(session, dict) or not isinstance(session.get("steps"), list):
            yield self._say(at, name, "must be a mapping with a list of `steps`")
            return
        for key in session:
            if key not in _SESSION_KEYS:
                yield self._say((*at, key), f"{name}: {key}", f"is not known; known are {', '.join(_SESSION_KEYS)}")
        for key, (is_right, wanted) in _CHOICES.items():
            if not is_right(session.get(key)):
                yield self._say((*at, key), f"{name}: {key}", f"must be {wanted}")
        for number, step in enumerate(session["steps"]):
            yield from self._step((*at, "steps", number), step, f"{name}, step {number + 1}")

    def _step(self, at: KeyPath, step: object, name: str) -> Iterator[str]:
        if not isinstance(step, dict) or len(step) != 1:
            yield self._say(at, name, "must be a mapping with one key, the kind of step")
            return
        [(kind, given)] = step.items()
        check = STEPS.get(kind)
        wanted = check(given) if check else ""
        if check is None:
            yield self._say((*at, kind), name, f"{kind!r} is no kind of step; known are {', '.join(STEPS)}")
        elif wanted:
            yield self._say((*at, kind), name, f"`{kind}` must be given {wanted}")

    def _say(self, at: KeyPath, name: str, message: str) -> str:
        fault = self._document.fault(at, Wrong(message, ""), key=True)
        return ": ".join(filter(None, (self._document.where(fault._replace(at=())), name, message)))
