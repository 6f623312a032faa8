"""Making the tries, and saying what came of each: a JSON object a line."""

from __future__ import annotations

import json
import os
import sys

from foundry_implementation_actor.sandbox.inside import files, holds, kernel, reach, rights
from foundry_implementation_actor.sandbox.inside.trying import TRIES, RefusedError, Scene, UntriedError

__all__ = ["TRIES", "Scene", "files", "holds", "kernel", "main", "reach", "rights"]


def main(scene: str, names: str) -> None:
    """Make the tries of these names, joined by commas, on a scene in JSON."""
    set_up = Scene(**json.loads(scene))
    for name in names.split(","):
        sys.stdout.write(json.dumps({"name": name, **_made(name, set_up)}) + "\n")
        sys.stdout.flush()


def _made(name: str, scene: Scene) -> dict[str, str]:
    try:
        read = TRIES[name].body(scene)
    except UntriedError as error:
        return {"said": "untried", "why": str(error)}
    except OSError as error:
        return {"said": "refused", "why": os.strerror(error.errno) if error.errno else str(error)}
    except RefusedError as error:
        return {"said": "refused", "why": str(error)}
    return {"said": "done", "read": (read or "")[:4096]}
