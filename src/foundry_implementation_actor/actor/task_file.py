"""A task file: YAML or JSON with the fields of a request's payload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.task import MAX_TASK_BYTES

_FIELDS = "task_id, title, definition_of_done and, where they apply, acceptance_surface, context, remediation_context"


def read_task_file(name: str) -> dict[str, Any]:
    """The payload in a file, or on stdin when the name is `-`. Its fields are checked at the door.

    Raises:
        ActorError: BAD_REQUEST naming the file, line and column, when it cannot be read as one object.
    """
    where = "stdin" if name == "-" else name
    text = _read(name, where)
    try:
        loaded = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise ActorError(Code.BAD_REQUEST, f"is neither YAML nor JSON: {error.problem}", where=place) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ActorError(Code.BAD_REQUEST, f"is neither YAML nor JSON: {error}", where=where) from error
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise ActorError(Code.BAD_REQUEST, "holds no task", hint=f"write an object with {_FIELDS}", where=where)
    return loaded


def _read(name: str, where: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MAX_TASK_BYTES + 1) if name == "-" else _head(Path(name))
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ActorError(Code.BAD_REQUEST, f"cannot be read: {error.strerror}", where=where) from error
    except UnicodeDecodeError as error:
        raise ActorError(Code.BAD_REQUEST, f"is not UTF-8 at byte {error.start}", where=where) from error
    if len(raw) > MAX_TASK_BYTES:
        raise ActorError(Code.TOO_LARGE, f"is larger than {MAX_TASK_BYTES:,} bytes", where=where)
    return text


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_TASK_BYTES + 1)
