"""What every builder of images offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.system.process import Stop


@dataclass(frozen=True)
class ImageOrder:
    """One image to build and publish: context and Dockerfile directories below `export`, and its ref."""

    export: Path
    context: str
    dockerfile: str
    ref: str


class Builder(Protocol):
    """Builds an image and pushes it, in one go."""

    @property
    def registry(self) -> str:
        """Where images go: host, optional port and path, without a scheme."""
        ...

    def lacks(self) -> Iterator[ActorError]:
        """What this host cannot build and publish without, each UNFIT and with how to get it."""
        ...

    def check(self) -> None:
        """See that this host can build and publish.

        Raises:
            ActorError: UNFIT, the first of what `lacks` gives.
        """
        ...

    def publish(self, order: ImageOrder, stop: Stop | None = None) -> None:
        """Build and push one image.

        Raises:
            ActorError: UNFIT with the tail of what the builder said.
        """
        ...
