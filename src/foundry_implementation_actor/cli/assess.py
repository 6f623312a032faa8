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
_SAID = ("why", "commitment")


@click.command(epilog=_EPILOG)
@door_options
def assess(folder: Path, task: str, as_json: bool) -> int:
    """Ask whether a task's acceptance surface can be delivered; writes nothing.

    FOLDER holds the sidecar. The task file has a task_id, a title, a
    definition_of_done (a list of texts) and an acceptance_surface: a list of
    expectations, each an object with at least an id. All four are required.
    """
    reply = answer(OneRequest(Door.ASSESS, folder, task, as_json=as_json, images=False))
    if not as_json:
        click.echo(_told(reply))
    return EXIT_DELIVERED if reply["feasible"] else EXIT_REFUSED


def _told(reply: dict[str, Any]) -> str:
    lines = ["feasible" if reply["feasible"] else "not feasible"]
    for title in ("objection", "commitment"):
        lines += [f"{title} {entry['id']}: {_about(entry)}" for entry in reply.get(f"{title}s", [])]
    return "\n".join(lines)


def _about(entry: dict[str, Any]) -> str:
    """What an entry says: under the one key that it was asked for bare, under others with their names."""
    said = {key: value for key, value in entry.items() if key != "id"}
    named = [f"{key}: {value}" for key, value in said.items() if key not in _SAID]
    return ", ".join([*(str(said[key]) for key in _SAID if key in said), *named])
