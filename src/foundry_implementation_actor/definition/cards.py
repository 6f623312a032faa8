"""Where the definition's cards are, and which of them a folder has."""

from __future__ import annotations

import os
from pathlib import Path

IDENTITY = "actor.yaml"
DATA = "actor-data.yaml"
MESSAGES = "actor-message.yaml"
DOORS = "actor-synchronous-messaging.yaml"
CARDS = (IDENTITY, DATA, MESSAGES, DOORS)

_CARDS_FOLDER = Path(__file__).resolve().parent / "cards"


def cards_path() -> Path:
    """The folder of the four cards that define the actor; read-only, inside the installed package."""
    return _CARDS_FOLDER


def missing(folder: str | Path) -> list[str]:
    """The names of the cards that a folder has not; a dangling link counts as a card that is there."""
    return [name for name in CARDS if not os.path.lexists(Path(folder) / name)]
