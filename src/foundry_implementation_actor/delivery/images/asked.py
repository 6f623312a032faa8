"""What a question to a registry is about."""

from __future__ import annotations

from typing import NamedTuple

from foundry_implementation_actor.delivery.images.login import Login
from foundry_implementation_actor.egress.route import Upstream


class Asked(NamedTuple):
    """A tag, where it is, and who asks by which way.

    `certificates` are a file, a folder, or the library's own; `upstream` are the site's proxies. `patience_s` is how
    many seconds any answer may take, but the one to a file that is sent.
    """

    host: str
    repository: str
    tag: str
    tls: bool
    certificates: str | bool
    login: Login | None
    upstream: Upstream
    patience_s: float
