"""What a question to a registry is about."""

from __future__ import annotations

from typing import NamedTuple

from foundry_implementation_actor.delivery.images.login import Login


class Asked(NamedTuple):
    """A tag, where it is, and who asks; `certificates` are a file, a folder, or the library's own."""

    host: str
    repository: str
    tag: str
    tls: bool
    certificates: str | bool
    login: Login | None
