"""A task file: YAML or JSON with the fields of a request's payload."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.task import MAX_TASK_BYTES
from foundry_implementation_actor.system.yaml_values import read_values

_TEXTS = ("task_id", "title", "context", "remediation_context")
FIELDS = ("task_id", "title", "definition_of_done", "acceptance_surface", "context", "remediation_context")
_FORM = f"{', '.join(FIELDS[:3])} and, where they apply, {', '.join(FIELDS[3:])}"
_SHOWN = 40


def read_task_file(name: str) -> dict[str, Any]:
    """The payload in a file, or on stdin when the name is `-`. Its fields are checked at the door.

    Raises:
        ActorError: BAD_REQUEST naming the file, line and column, when it cannot be read as one object.
    """
    where = "stdin" if name == "-" else name
    task = read_values(_read(name, where), where).root
    if not isinstance(task, dict):
        raise ActorError(Code.BAD_REQUEST, "holds no task", hint=f"write an object with {_FORM}", where=where)
    if "payload" in task:
        said = "holds the whole body of an HTTP request"
        raise ActorError(Code.BAD_REQUEST, said, hint="give the payload's fields alone", where=where)
    return task


def advice(payload: Mapping[str, Any]) -> str:
    """What to do about a payload that was refused at the door."""
    found = [_instead_of(str(name)) for name in payload if name not in FIELDS]
    given = {name: payload[name] for name in _TEXTS if name in payload}
    done = payload.get("definition_of_done")
    given |= {f"definition_of_done[{at}]": item for at, item in enumerate(done if isinstance(done, list) else ())}
    found += [f"put the value of {name} in quotes" for name, value in given.items() if isinstance(value, int | float)]
    return "; ".join(dict.fromkeys(found)) or "correct the task and ask again"


def _instead_of(name: str) -> str:
    near = get_close_matches(name.lower().replace("-", "_"), FIELDS, n=1)
    return f"did you mean `{near[0]}` instead of `{clip(name, _SHOWN)}`?" if near else f"the fields are {_FORM}"


def _read(name: str, where: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MAX_TASK_BYTES + 1) if name == "-" else _head(Path(name))
    except OSError as error:
        hint = "name a file with the task, or - for stdin"
        raise ActorError(Code.BAD_REQUEST, f"cannot be read: {error.strerror}", hint=hint, where=where) from error
    except ValueError:
        raise ActorError(Code.BAD_REQUEST, "no path can hold a NUL", hint="name another file", where=where) from None
    if len(raw) > MAX_TASK_BYTES:
        raise ActorError(Code.TOO_LARGE, f"is larger than {MAX_TASK_BYTES:,} bytes", hint=_SHORTER, where=where)
    return _decoded(raw, where)


_SHORTER = "put the material into the repository and name its path in the task"


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        what = f"byte {raw[error.start]:#04x} is not UTF-8"
        raise ActorError(
            Code.BAD_REQUEST, what, hint="save the file as UTF-8", where=f"{where}:{line}:{column}"
        ) from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_TASK_BYTES + 1)
