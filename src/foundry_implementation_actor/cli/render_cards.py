"""`render-cards`: write a use's four cards beside its sidecar."""

from __future__ import annotations

from pathlib import Path

import click

from foundry_implementation_actor.definition.render import render_cards as render
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.load import folder_of

_EPILOG = """\b
Examples:
  foundry-implementation-actor render-cards
  foundry-implementation-actor render-cards path/to/use

\b
Exit codes: 0 written, 2 the sidecar cannot be used, or the folder not written to.
"""


@click.command("render-cards", epilog=_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), default=".")
def render_cards(folder: Path) -> None:
    """Write the four cards beside FOLDER's sidecar.

    They come from the definition in this package and replace cards that are
    there. FOLDER may be a sidecar file; the default is the current directory.
    """
    config = CapabilityConfig.load(folder)
    for path in render(config, folder_of(folder)):
        click.echo(f"wrote {path}")
