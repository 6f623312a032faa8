"""What every builder of images offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop


@dataclass(frozen=True)
class ImageOrder:
    """One image to build and publish: context and Dockerfile directories below `export`, and its ref."""

    export: Path
    context: str
    dockerfile: str
    ref: str

    def check(self) -> None:
        """See that the directories and the Dockerfile lie inside the export, links followed.

        Raises:
            ActorError: UNFIT, naming the path that leads out.
        """
        root = self.export.resolve()
        for path in (self.context, self.dockerfile, f"{self.dockerfile}/Dockerfile"):
            if not (root / path).resolve().is_relative_to(root):
                said = f"the path {path!r} leads out of the commit"
                raise ActorError(Code.UNFIT, said, hint="take the link away", where=self.ref)


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
