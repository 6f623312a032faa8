"""One image, published so that asking again gives the same: built, looked for, pushed, read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.delivery.images.port import Builder, ImageOrder, Published
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop


@dataclass(frozen=True)
class Publisher:
    """A builder, and the registry that its images go to."""

    builder: Builder
    registry: Registry

    def lacks(self) -> Iterator[ActorError]:
        """What this host cannot publish without, each UNFIT and with how to get it."""
        yield from self.builder.lacks()
        yield from self.registry.lacks()

    def check(self) -> None:
        """See that this host can publish.

        Raises:
            ActorError: UNFIT, the first of what `lacks` gives.
        """
        for missing in self.lacks():
            raise missing

    def publish(self, order: ImageOrder, desk: Path, stop: Stop | None = None) -> Published:
        """Build an image, and push it unless the registry has it already; nothing that is there is overwritten.

        Args:
            order: what to build.
            desk: an empty directory for the builder's own files.
            stop: ends it once it is set.

        Raises:
            ActorError: UNFIT when it cannot be built or pushed, or the ref names another image.
        """
        order.check()
        with self.builder.building(order, desk, stop) as built:
            there = self.registry.digest(order.ref)
            if there and there != built.digest:
                said = f"the ref names another image, {there}; {built.digest} was built, and nothing was overwritten"
                raise ActorError(Code.UNFIT, said, hint="look at it, and delete it to publish this", where=order.ref)
            if not there:
                built.push()
                self._read_back(order, built.digest)
            return Published(order.ref, built.digest, was_there=bool(there))

    def _read_back(self, order: ImageOrder, digest: str) -> None:
        now = self.registry.digest(order.ref)
        if now != digest:
            said = f"the image was pushed as {digest}, and the ref now names {now or 'nothing'}"
            raise ActorError(Code.UNFIT, said, hint="look who else pushes to it", where=order.ref)
