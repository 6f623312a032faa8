"""Which release of this package is installed."""

from __future__ import annotations

from importlib.metadata import version as installed_version

from foundry_implementation_actor.domain.package import DISTRIBUTION


def version() -> str:
    """The version of this package, as it is installed."""
    return installed_version(DISTRIBUTION)
