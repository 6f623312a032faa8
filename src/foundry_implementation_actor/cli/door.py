"""What `implement` and `assess` share: their options, and putting one request to an actor of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from foundry_implementation_actor.actor.boot import answer_once
from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.actor.task_file import read_task_file
from foundry_implementation_actor.cli.progress import records_wanted, shower, write_record
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.system.secrets import SECRET_VARIABLES, close_memory, scrub_environment


@dataclass(frozen=True)
class OneRequest:
    """One request from the command line."""

    door: Door
    folder: Path
    task: str
    as_json: bool
    images: bool


def door_options(command: Callable[..., int]) -> Callable[..., int]:
    """The arguments of both doors: FOLDER, --task and --json."""
    command = click.option(
        "--json", "as_json", is_flag=True, help="Print the reply alone, as JSON; records on stderr."
    )(command)
    command = click.option("--task", required=True, metavar="FILE|-", help="YAML or JSON with the task's fields.")(
        command
    )
    folder = click.Path(path_type=Path)  # existence is checked with the sidecar, whose error says more
    return click.argument("folder", default=".", type=folder)(command)


def answer(request: OneRequest) -> dict[str, Any]:
    """Run the request here and now, telling its progress on stderr; with JSON wanted, print the reply.

    Raises:
        ActorError: the sidecar, the settings or the task cannot be used, or the run was stopped.
    """
    close_memory()
    payload = read_task_file(request.task)
    config = CapabilityConfig.load(request.folder)
    settings = Settings.from_env()
    settings = replace(settings, images=settings.images and request.images)
    color = click.get_current_context().color
    sink = write_record if records_wanted(as_json=request.as_json) else shower(color=color)
    engine = ClaudeCodeEngine(config, settings=settings, sink=sink)
    scrub_environment(SECRET_VARIABLES)
    reply = answer_once(request.folder, config, engine, request.door, payload)
    if request.as_json:
        click.echo(json.dumps(reply, ensure_ascii=False))
    return reply
