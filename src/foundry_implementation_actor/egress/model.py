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
from foundry_implementation_actor.egress.bill import Bill
from foundry_implementation_actor.egress.exchange import Onlooker
from foundry_implementation_actor.egress.http import Header, ModelRefusedError, Request
from foundry_implementation_actor.egress.meter import Meter

ADDRESS = "https://api.anthropic.com"
"""Where the model is unless the operator says otherwise."""

_PORTS = {"http": 80, "https": 443}
# What the CLI asks for, and what tells of models; whatever else there is (batches, files) may cost money uncounted.
_ASKED = (
    rb"GET /v1/models(?:/\w[\w.:@-]*)?",
    rb"POST /v1/messages(?P<free>/count_tokens)?",
)
_OPEN = re.compile(rb"(?:%b)(?:\?[^#]*)?" % b"|".join(_ASKED))
_PLAIN = (b"Accept-Encoding", b"identity")
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
    """The model for one session.

    `token` is what the session has in the place of the login; `meter` counts what it asks.
    """

    model: Model
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    meter: Meter = field(default_factory=Meter)

    def logged_in(self, request: Request) -> Request:
        """The session's request as the service gets it: the word of this run exchanged for the login.

        Its answer is asked for as it is, not compressed, so that what it cost can be read off it.

        Raises:
            ModelRefusedError: 401 when it does not bear the word, 403 when it asks for anything but messages, the
                count of their tokens and the list of models, 415 when it is compressed.
        """
        headers = tuple(self._exchanged(request.headers))
        if headers == request.headers:
            said = "this is the way to the model for one session, and that request is not of it"
            raise ModelRefusedError(401, said)
        if _asked(request) is None:
            said = "sessions reach the model at /v1/messages, /v1/messages/count_tokens and /v1/models only"
            raise ModelRefusedError(403, said, self.model.target)
        if any(name.lower() == b"content-encoding" for name, _ in headers):
            raise ModelRefusedError(415, "a request to the model is not to be compressed")
        plain = (*(header for header in headers if header[0].lower() != b"accept-encoding"), _PLAIN)
        path = urlsplit(self.model.address).path.rstrip("/").encode() + request.path
        return replace(request, path=path, headers=plain, secure=self.model.secure)

    def onlooker(self, request: Request) -> Onlooker:
        """Who counts what this request of the session costs.

        Raises:
            ModelRefusedError: as `Meter.check_rest`.
        """
        asked = _asked(request)
        is_paid = asked is not None and request.method == b"POST" and not asked["free"]
        return Bill(self.meter) if is_paid else Onlooker()

    def _exchanged(self, headers: tuple[Header, ...]) -> Iterator[Header]:
        for name, value in headers:
            scheme = _SCHEMES.get(name.lower())
            if scheme is not None and hmac.compare_digest(value, scheme + self.token.encode()):
                yield name, scheme + self.model.login.encode()
            else:
                yield name, value


def _asked(request: Request) -> re.Match[bytes] | None:
    return _OPEN.fullmatch(request.method + b" " + request.path)
