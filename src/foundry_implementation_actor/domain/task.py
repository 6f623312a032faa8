"""A task as a caller states it, checked at the door before any work."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door

TASK_ID_RULE = (
    "1 to 64 of the characters A-Z a-z 0-9 . _ -, starting with a letter or digit, "
    "without '..', not ending in '.' or '.lock'"
)
MAX_TASK_BYTES = 1024 * 1024
MAX_ENTRIES = 1_000
"""Of `definition_of_done` and of `acceptance_surface` each: more than a session could work through."""

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_task_id(value: object) -> bool:
    """Whether a value can name a branch `impl/<id>` and stand in an image tag (CONTRACT 2)."""
    return (
        isinstance(value, str)
        and _TASK_ID.fullmatch(value) is not None
        and ".." not in value
        and not value.endswith((".", ".lock"))
    )


@dataclass(frozen=True)
class Task:
    """One request at one door.

    `acceptance_surface` entries are objects with at least a string `id`; `remediation_context` is
    what the previous attempt got wrong, empty on a first attempt.
    """

    door: Door
    task_id: str
    title: str
    definition_of_done: tuple[str, ...]
    acceptance_surface: tuple[Mapping[str, Any], ...] = ()
    context: str = ""
    remediation_context: str = ""

    @property
    def branch(self) -> str:
        """The branch that holds this task's work."""
        return f"impl/{self.task_id}"

    def digest(self, capability: str) -> str:
        """SHA-256 (hex) of the request: equal for the same task, text and capability only."""
        stated = [
            capability, self.door.value, self.task_id, self.title, self.definition_of_done,
            self.acceptance_surface, self.context, self.remediation_context,
        ]  # fmt: skip
        canonical = json.dumps(stated, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def read_task(door: Door, payload: Mapping[str, Any]) -> Task:
    """Check a payload's fields and their contents.

    Raises:
        ActorError: BAD_REQUEST naming every field that is wrong, or TOO_LARGE above
            `MAX_TASK_BYTES` of JSON. The task id's grammar is not checked here: an id that cannot
            be a branch is a business refusal (`is_task_id`).
    """
    size = len(json.dumps(payload, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_TASK_BYTES:
        raise ActorError(
            Code.TOO_LARGE,
            f"the task is {size:,} bytes of JSON, more than the {MAX_TASK_BYTES:,} that a session can be given",
            hint="shorten context, or put the material into the repository and name its path",
        )
    surface = payload.get("acceptance_surface")
    if isinstance(surface, list):
        payload = {**payload, "acceptance_surface": [_named(item) for item in surface]}
    wrong = [*_wrong_texts(payload), *_wrong_done(payload), *_wrong_surface(door, payload)]
    if wrong:
        raise ActorError(Code.BAD_REQUEST, "; ".join(wrong))
    return Task(
        door=door,
        task_id=payload["task_id"],
        title=payload["title"],
        definition_of_done=tuple(payload["definition_of_done"]),
        acceptance_surface=tuple(payload.get("acceptance_surface") or ()),
        context=payload.get("context") or "",
        remediation_context=payload.get("remediation_context") or "",
    )


def _named(expectation: object) -> object:
    """An expectation whose id is a number, as YAML reads one without quotes, under that number's text."""
    if isinstance(expectation, dict) and type(expectation.get("id")) is int:
        return {**expectation, "id": str(expectation["id"])}
    return expectation


def _wrong_texts(payload: Mapping[str, Any]) -> list[str]:
    wrong = []
    for field, required in (
        ("task_id", True), ("title", True), ("context", False), ("remediation_context", False),
    ):  # fmt: skip
        value = payload.get(field, None if required else "")
        if not isinstance(value, str):
            wrong.append(f"{field} must be a string, not {_kind(value)}")
        elif field == "title" and not value.strip():
            wrong.append("title is empty: say in one line what is to be done")
        elif not _is_text(value):
            wrong.append(f"{field} holds half of a surrogate pair, which is no text")
    return wrong


def _wrong_done(payload: Mapping[str, Any]) -> list[str]:
    done = payload.get("definition_of_done")
    if not isinstance(done, list) or not done:
        return ["definition_of_done must be a list with at least one criterion"]
    if len(done) > MAX_ENTRIES:
        return [f"definition_of_done holds {len(done):,} criteria, more than the {MAX_ENTRIES:,} that a task may have"]
    return [
        f"definition_of_done[{i}] must be a non-empty string, not {_kind(item)}"
        for i, item in enumerate(done)
        if not isinstance(item, str) or not item.strip() or not _is_text(item)
    ]


def _wrong_surface(door: Door, payload: Mapping[str, Any]) -> list[str]:
    surface = payload.get("acceptance_surface")
    if surface is None and door is Door.IMPLEMENT:
        return []
    if not isinstance(surface, list) or (door is Door.ASSESS and not surface):
        return ["acceptance_surface must be a list with at least one expectation"]
    if len(surface) > MAX_ENTRIES:
        return [f"acceptance_surface holds {len(surface):,} expectations, more than the {MAX_ENTRIES:,} of one task"]
    wrong = [
        f"acceptance_surface[{i}] must be an object with a non-empty string 'id'"
        for i, item in enumerate(surface)
        if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]
    ]
    ids = Counter(item["id"] for item in surface if isinstance(item, dict) and isinstance(item.get("id"), str))
    repeated = sorted(name for name, times in ids.items() if times > 1)
    return wrong + [f"acceptance_surface names the id {name!r} more than once" for name in repeated]


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
