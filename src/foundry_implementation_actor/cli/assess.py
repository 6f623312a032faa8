"""`assess`: whether one task can be delivered, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from foundry_implementation_actor.cli.door import OneRequest, answer, door_options
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED
from foundry_implementation_actor.domain.run import Door

_EPILOG = """\b
Examples:
  foundry-implementation-actor assess . --task task.yaml
  foundry-implementation-actor assess . --task task.yaml --json

\b
Exit codes: 0 feasible, 1 not feasible, or its session was cut off,
2 a mistake in what was asked, 3 this host is not fit, 130 interrupted.
"""


@click.command(epilog=_EPILOG)
@door_options
def assess(folder: Path, task: str, as_json: bool) -> int:
    """Ask whether a task's acceptance surface can be delivered; writes nothing.

    FOLDER holds the sidecar. The task file has an acceptance_surface: a list of
    expectations, each an object with at least an id.
    """
    reply = answer(OneRequest(Door.ASSESS, folder, task, as_json=as_json, images=False))
    if not as_json:
        click.echo(_told(reply))
    return EXIT_DELIVERED if reply["feasible"] else EXIT_REFUSED


def _told(reply: dict[str, Any]) -> str:
    lines = ["feasible" if reply["feasible"] else "not feasible"]
    for title in ("objections", "commitments"):
        lines += [f"{title.removesuffix('s')} {_entry(entry)}" for entry in reply.get(title, [])]
    return "\n".join(lines)


def _entry(entry: dict[str, Any]) -> str:
    rest = ", ".join(f"{key}: {value}" for key, value in entry.items() if key != "id")
    return f"{entry.get('id', '')}: {rest}"
