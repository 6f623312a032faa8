"""The registry: asked which digest a ref has, and given images that were packed here."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.delivery.images.layout import Packed
from foundry_implementation_actor.delivery.images.login import login
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.egress.route import Upstream

_ADDRESS = re.compile(r"[a-z0-9][a-z0-9.-]*(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


@dataclass(frozen=True)
class Registry:
    """Where images go.

    `address` is host, optional port and path, without a scheme; `docker_config` is the directory of its login, or
    empty; without `tls` it is spoken to in plain HTTP. `environment` is the whole one of a credential helper, and
    names the site's certificates. No answer may take longer than `patience_s`, but the one to a file that is sent.
    """

    address: str
    docker_config: str
    environment: Mapping[str, str]
    tls: bool = True
    patience_s: float = 20.0

    @property
    def host(self) -> str:
        """Its host, with its port when it has one."""
        return self.address.partition("/")[0]

    def lacks(self) -> Iterator[ActorError]:
        """What keeps this host from publishing to it, each UNFIT: no address, no answer, a login that it refuses."""
        if not _ADDRESS.fullmatch(self.address):
            said = f"IMAGE_REGISTRY={self.address!r} is no registry" if self.address else "IMAGE_REGISTRY is not set"
            yield ActorError(Code.UNFIT, said, hint="set it to host[:port][/path], or run with IMAGE_BUILDER=none")
            return
        try:
            self.digest(f"{self.address}/none:none")
        except ActorError as error:
            yield error

    def digest(self, ref: str) -> str:
        """The digest of what a ref of this registry names; empty when it names nothing.

        Raises:
            ActorError: UNFIT when the registry does not answer, or refuses the login.
        """
        # Loading it takes longer than most commands do in all, and only who publishes needs it.
        from foundry_implementation_actor.delivery.images.client import digest  # noqa: PLC0415

        return digest(self._asked(ref))

    def send(self, ref: str, packed: Packed, halt: Callable[[], None]) -> None:
        """Upload an image and name it by a ref of this registry; see `client.send`.

        Raises:
            ActorError: UNFIT when the registry does not take it, and whatever `halt` raises.
        """
        from foundry_implementation_actor.delivery.images.client import send  # noqa: PLC0415 - as above

        send(self._asked(ref), packed, halt)

    def _asked(self, ref: str) -> Asked:
        repository, _, tag = ref.removeprefix(f"{self.host}/").rpartition(":")
        found = login(self.docker_config, self.host, self.environment)
        upstream = Upstream.read(self.environment)
        return Asked(self.host, repository, tag, self.tls, self._certificates(), found, upstream, self.patience_s)

    def _certificates(self) -> str | bool:
        """The certificates that the builders' programs trust too: the site's own, else the system's."""
        paths = ssl.get_default_verify_paths()
        named = (self.environment.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        return next(filter(None, (*named, paths.cafile, paths.capath)), True)
