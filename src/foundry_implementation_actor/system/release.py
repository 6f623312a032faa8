"""Which release of this package is installed."""

from __future__ import annotations

from importlib.metadata import version as installed_version

DISTRIBUTION = "foundry-implementation-actor"


def version() -> str:
    """The version of this package, as it is installed."""
    return installed_version(DISTRIBUTION)
