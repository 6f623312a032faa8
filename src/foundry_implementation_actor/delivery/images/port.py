"""What every builder of images offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop


@dataclass(frozen=True)
class ImageOrder:
    """One image to build and publish, and all that its digest depends on.

    `context` and `dockerfile` are directories below `export`; `created` is when its commit was made, in seconds
    since the epoch; `labels` go into its configuration.
    """

    export: Path
    context: str
    dockerfile: str
    ref: str
    created: int
    labels: Mapping[str, str] = field(default_factory=dict)

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


class NotBuiltError(ActorError):
    """A builder that came to its own end without an image: the same commit will most likely not be built next time."""


class Published(NamedTuple):
    """An image that the registry has: its ref, its digest, and whether it was there before."""

    ref: str
    digest: str
    was_there: bool


class Built(Protocol):
    """An image that was built and not yet pushed."""

    @property
    def digest(self) -> str:
        """The digest that the registry will name it by, `sha256:` and 64 hexadecimal digits."""
        ...

    def push(self) -> None:
        """Send it to the registry, under the ref of its order.

        Raises:
            ActorError: UNFIT with the tail of what the builder said; INTERRUPTED when the actor is stopping.
        """
        ...


class Builder(Protocol):
    """Builds images; the same order gives the same digest."""

    @property
    def name(self) -> str:
        """What IMAGE_BUILDER calls it."""
        ...

    def lacks(self) -> Iterator[ActorError]:
        """What this host cannot build without, each UNFIT and with how to get it."""
        ...

    def building(self, order: ImageOrder, desk: Path, stop: Stop | None = None) -> AbstractContextManager[Built]:
        """Build an image; it can be pushed as long as the context is open, and nothing of it stays here after that.

        Args:
            order: what to build.
            desk: an empty directory for the builder's own files.
            stop: ends the build once it is set.

        Raises:
            ActorError: UNFIT with the tail of what the builder said; INTERRUPTED when the actor is stopping.
        """
        ...
