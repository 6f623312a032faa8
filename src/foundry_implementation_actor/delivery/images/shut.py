"""What a Dockerfile may not say while its lines are to reach no network."""

from __future__ import annotations

import re

from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.domain.error import ActorError, Code

# BuildKit hands a Dockerfile that begins so to the image that is named, which may heed no order of ours.
_FRONTEND = re.compile(r"\A(?:\ufeff)?(?:\s*(?:#|//).*\n)*?\s*(?:#|//)\s*syntax\s*=\s*(?P<image>\S+)", re.IGNORECASE)
_DOCKERS = re.compile(r"(docker\.io/)?docker/dockerfile([:@].*)?")
# Later builders let a line choose its own.
_OWN_NETWORK = re.compile(r"--network\s*=")
_LONGEST = 1024 * 1024


def check_shut(order: ImageOrder) -> None:
    """See that a Dockerfile does not choose its own network.

    Raises:
        ActorError: UNFIT, saying what it may not say.
    """
    with (order.export / order.dockerfile / "Dockerfile").open("rb") as file:
        text = file.read(_LONGEST).decode("utf-8", "replace")
    chosen = _FRONTEND.match(text)
    if chosen and not _DOCKERS.fullmatch(chosen["image"]):
        raise _refused(order, f"it names a frontend of its own, {chosen['image'][:200]}")
    if _OWN_NETWORK.search(text):
        raise _refused(order, "a line of it chooses a network (--network=)")


def _refused(order: ImageOrder, said: str) -> ActorError:
    hint = "take that away, or set BUILD_NETWORK=on"
    return ActorError(Code.UNFIT, f"the Dockerfile cannot be kept from the network: {said}", hint=hint, where=order.ref)
