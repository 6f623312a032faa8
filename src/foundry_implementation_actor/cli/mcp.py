"""`mcp`: the gate for a coding agent, over stdio."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import click

from foundry_implementation_actor.cli.main import PACKAGE, needing
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, ActorError

_EPILOG = """\b
Examples:
  claude mcp add gate -- foundry-implementation-actor mcp --app /path/to/app
  foundry-implementation-actor mcp

\b
Exit codes: 0 the client went away, 2 the app's folder is not there,
3 the `gate` extra is not installed.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--app", metavar="ROOT", type=click.Path(path_type=Path), help="A folder of the app; default: the current."
)
def mcp(app: Path | None) -> int:
    """Offer the landing gate to a coding agent: make, implement, edit, read, test, status.

    Speaks the Model Context Protocol on stdin and stdout. Keeps ty and pytest
    ready between calls; they end with it. A folder without an app is told on
    stderr and by every tool, until an app is there.
    """
    with needing("gate", "mcp"):
        from foundry_implementation_actor.cli.gate_answer import open_gate  # noqa: PLC0415 - optional
        from foundry_implementation_actor.gate.warm import Warm  # noqa: PLC0415 - optional
        from foundry_implementation_actor.mcp_server.server import serve  # noqa: PLC0415 - optional, and slow to import

    root = Path(os.path.realpath(app or Path.cwd()))
    try:
        open_gate(root, as_json=True)
    except ActorError as error:
        if not root.is_dir():
            raise
        click.echo(f"warning: {error}; every tool says so until it is mended", err=True)
    with Warm() as warm:
        serve(lambda: replace(open_gate(root, as_json=True), isolated=warm.isolated), version(PACKAGE))
    return EXIT_DELIVERED
