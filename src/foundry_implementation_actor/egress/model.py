"""The model's service as a session reaches it: at the actor, which alone has the login.

A session could read the memory of the program that it drives, so a login that the program holds is the
session's. It gets a word of its run instead, good only here and only while it runs; on the way out the actor
puts the login in its place.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from foundry_implementation_actor.egress.allowed import Target
from foundry_implementation_actor.egress.http import Header, RefusedError, Request

ADDRESS = "https://api.anthropic.com"
"""Where the model is unless the operator says otherwise."""

_PORTS = {"http": 80, "https": 443}
# A step up, by any of the signs that servers take for a slash or a dot.
_CLIMBS = re.compile(rb"(?:/|\\|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\;]|%2f|%5c|\Z)", re.IGNORECASE)
_SCHEMES = {b"authorization": b"Bearer ", b"x-api-key": b""}


@dataclass(frozen=True)
class Model:
    """The service, and the login for it.

    `address` is an http or https address; what a session asks for stands below its path. `variable` is the one
    in which the engine expects its login, `login` the value that only the actor knows.
    """

    address: str
    variable: str
    login: str = field(repr=False)

    @property
    def target(self) -> Target:
        """Its host and port."""
        parts = urlsplit(self.address)
        return Target.of(parts.hostname or "", parts.port or _PORTS[parts.scheme])

    @property
    def secure(self) -> bool:
        """Whether TLS leads to it."""
        return self.address.startswith("https:")


@dataclass(frozen=True)
class ModelDoor:
    """The model for one session; `token` is what the session has in the place of the login."""

    model: Model
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def logged_in(self, request: Request) -> Request:
        """The session's request as the service gets it: the word of this run exchanged for the login.

        Raises:
            RefusedError: 401 when it does not bear the word, 405 when its answer would repeat the login, 400 when
                its path may lead out of the address's.
        """
        if request.method == b"TRACE":
            raise RefusedError(405, "a service would answer TRACE with the login")
        if _CLIMBS.search(re.split(rb"[?#]", request.path, maxsplit=1)[0]):
            raise RefusedError(400, "the path to the model takes no `.` or `..`")
        headers = tuple(self._exchanged(request.headers))
        if headers == request.headers:
            raise RefusedError(401, "this is the way to the model for one session, and that request is not of it")
        path = urlsplit(self.model.address).path.rstrip("/").encode() + request.path
        return replace(request, path=path, headers=headers, secure=self.model.secure)

    def _exchanged(self, headers: tuple[Header, ...]) -> Iterator[Header]:
        for name, value in headers:
            scheme = _SCHEMES.get(name.lower())
            if scheme is not None and hmac.compare_digest(value, scheme + self.token.encode()):
                yield name, scheme + self.model.login.encode()
            else:
                yield name, value
