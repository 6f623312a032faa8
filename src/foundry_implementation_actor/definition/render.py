"""Writing a use's four cards from the definition and its sidecar."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

from foundry_implementation_actor.definition.cards import CARDS, IDENTITY, cards_path
from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import write_below

_PACKAGE = "foundry-implementation-actor"


def render_cards(config: Capability, dest: str | Path) -> list[Path]:
    """Write the four cards of one use into a folder.

    `actor.yaml` gets the use's own name and description; the other three are the definition's, byte
    for byte, under a banner. Existing cards are replaced: each one whole, by renaming, and a link in
    a card's place is replaced too, never written through.

    Args:
        config: the checked capability.
        dest: an existing folder, usually the one with the sidecar.

    Returns:
        The four paths, `actor.yaml` first.

    Raises:
        ActorError: BAD_REQUEST naming the first card that could not be written.
    """
    folder = Path(os.path.realpath(dest))
    for name in CARDS:
        try:
            write_below(folder, name, _rendered(config, name))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            hint = "name a folder that exists and can be written"
            where = str(folder / name)
            raise ActorError(Code.BAD_REQUEST, f"cannot be written ({reason})", hint=hint, where=where) from None
    return [folder / name for name in CARDS]


def _rendered(config: Capability, name: str) -> bytes:
    card = _identity(config) if name == IDENTITY else (cards_path() / name).read_bytes()
    return _banner() + card


def _banner() -> bytes:
    made = f"# Rendered by {_PACKAGE} {version(_PACKAGE)} (render-cards) from its definition and the sidecar."
    return f"{made}\n# Do not edit: the next rendering replaces this file.\n".encode()


def _identity(config: Capability) -> bytes:
    description = (
        f"Implements tasks of {config.capability} in {config.source_repo}: each becomes one verified branch "
        f"that changes {', '.join(config.writes_only_under)} and nothing else."
    )
    lines = (
        "manifest: papeete-actor-manifest/v0",
        f"name: {json.dumps(config.actor_name)}",  # a JSON string is a YAML string, whatever it holds
        f"description: {json.dumps(description)}",
    )
    return ("\n".join(lines) + "\n").encode()
