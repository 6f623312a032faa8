"""`implement`: one task, one branch, without a server."""

from __future__ import annotations

from pathlib import Path

import click

from foundry_implementation_actor.cli.door import OneRequest, answer, door_options
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED
from foundry_implementation_actor.domain.run import Door

_EPILOG = """\b
Examples:
  foundry-implementation-actor implement . --task task.yaml
  foundry-implementation-actor implement . --task task.yaml --no-images
  printf '{"task_id": "T-1", "title": "…", "definition_of_done": ["…"]}' |
    foundry-implementation-actor implement . --task - --json

\b
Exit codes: 0 delivered, 1 refused, or its session was cut off, 2 a mistake
in what was asked, 3 this host is not fit, 130 interrupted.
"""


@click.command(epilog=_EPILOG)
@door_options
@click.option("--no-images", is_flag=True, help="Build and publish no image.")
def implement(folder: Path, task: str, as_json: bool, no_images: bool) -> int:
    """Turn one task into one pushed branch, or say why not.

    FOLDER holds the sidecar. The task file has a task_id, a title and a
    definition_of_done (a list of texts); all three are required. Settings come
    from the environment, as for serve.
    """
    reply = answer(OneRequest(Door.IMPLEMENT, folder, task, as_json=as_json, images=not no_images))
    if not as_json:
        click.echo(_told(reply))
    return EXIT_DELIVERED if reply["accepted"] else EXIT_REFUSED


def _told(reply: dict[str, object]) -> str:
    if not reply["accepted"]:
        return f"refused: {reply['because']}"
    images = reply["images"]
    assert isinstance(images, list), "the card says so"
    return "\n".join([f"accepted: {reply['branch']}", *(f"image: {image}" for image in images)])
