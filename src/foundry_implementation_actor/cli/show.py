"""`show`: every name that is derived from a sidecar."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.show import rows, structure

_REGISTRY = re.compile(r"[A-Za-z0-9<][A-Za-z0-9._<>-]*(:[0-9]+)?(/[a-z0-9._-]+)*/?")
_EPILOG = """\b
Examples:
  foundry-implementation-actor show
  foundry-implementation-actor show path/to/use --registry registry.example.com:5000/team
  foundry-implementation-actor show --json

\b
Exit codes: 0 shown, 2 the sidecar or --registry cannot be used.
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option("--registry", default="<registry>", help="The image registry that references start with.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(folder: Path, registry: str, as_json: bool) -> None:
    """Print every name that is derived from FOLDER's sidecar.

    FOLDER may be a sidecar file; the default is the current directory.
    """
    if not _REGISTRY.fullmatch(registry):
        raise click.BadParameter("write host[:port][/path], without a scheme", param_hint="--registry")
    config = CapabilityConfig.load(folder)
    if as_json:
        click.echo(json.dumps(structure(config, registry=registry), ensure_ascii=True))
        return
    table = rows(config, registry=registry)
    width = max(len(row.name) for row in table)
    for row in table:
        click.echo(f"{row.name:<{width}}  {row.value}")
