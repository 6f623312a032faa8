"""The way out for one connection: straight to a checked address, or through the site's own proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.egress.allowed import Address, Allowed, Target
from foundry_implementation_actor.egress.http import Header, RefusedError, Request, read_response
from foundry_implementation_actor.egress.wire import Connection, read_head

_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
_CONNECT_S = 15.0
_MOST_TRIES = 4
_SCHEME_PORTS = {"http": 80, "https": 443}


class Way(NamedTuple):
    """A connection on which a request is sent, and how it is put to whoever is at its other end."""

    connection: Connection
    absolute: bool = False
    also: tuple[Header, ...] = ()


@dataclass(frozen=True)
class SiteProxy:
    """A proxy of the site: its address, whether TLS leads to it, and the login it wants."""

    host: str
    port: int
    tls: bool = False
    login: str = field(default="", repr=False)

    @property
    def headers(self) -> tuple[Header, ...]:
        """What it must be told with every request."""
        if not self.login:
            return ()
        return ((b"Proxy-Authorization", b"Basic " + base64.b64encode(self.login.encode())),)


@dataclass(frozen=True)
class Upstream:
    """The site's proxies, as the usual variables name them, and the hosts that are reached without one."""

    https: SiteProxy | None = None
    http: SiteProxy | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; the lower-case spelling comes first.

        Raises:
            SettingsError: one that would be used is no address of an http or https proxy; it names the
                variable and does not repeat the value.
        """
        said = {name: environ.get(name.lower()) or environ.get(name, "") for name in _VARIABLES}
        without = tuple(word.lower() for word in re.split(r"[\s,]+", said["NO_PROXY"]) if word)
        return cls(_site_proxy("HTTPS_PROXY", said), _site_proxy("HTTP_PROXY", said), without)

    def proxy_for(self, target: Target, *, tunnel: bool) -> SiteProxy | None:
        """The proxy through which a target is reached; None when it is reached directly."""
        if any(_is_meant(word, target) for word in self.without):
            return None
        return self.https if tunnel else self.http


@dataclass(frozen=True)
class Routes:
    """How targets are reached; `names` gives fixed addresses that no resolver is asked about.

    `head_bytes` bounds the head of a site proxy's answer.
    """

    allowed: Allowed
    names: Mapping[str, str]
    upstream: Upstream
    head_bytes: int

    async def way_to(self, request: Request) -> Way:
        """A connection for a request whose target is listed.

        Raises:
            RefusedError: 403 when its name leads only where it may not, 502 when nobody answers.
        """
        target, through = request.target, request.tunnel or request.secure
        proxy = None if target.host in self.names else self.upstream.proxy_for(target, tunnel=through)
        connection = await (self._straight(target) if proxy is None else _to_site_proxy(proxy))
        if proxy is not None and not through:
            return Way(connection, absolute=True, also=proxy.headers)
        try:
            if proxy is not None:
                await self._ask_for_tunnel(connection, request, proxy)
            if request.secure:
                await _secured(connection, target)
        except BaseException:
            connection.end()
            raise
        return Way(connection)

    async def _ask_for_tunnel(self, connection: Connection, request: Request, proxy: SiteProxy) -> None:
        connection.writer.write(request.tunnel_head(proxy.headers))
        try:
            async with asyncio.timeout(_CONNECT_S):
                await connection.writer.drain()
                response = read_response(await read_head(connection.reader, self.head_bytes), b"CONNECT")
        except (OSError, EOFError, RefusedError) as error:
            raise RefusedError(502, "the site's proxy gave no answer") from error
        if not 200 <= response.status < 300:
            said = f"the site's proxy does not lead to {request.target}: it answered {response.status}"
            raise RefusedError(502, said)

    async def _straight(self, target: Target) -> Connection:
        """Connect to one of the target's addresses that may be reached.

        The address that was checked is the one that is connected to: a name that changes meanwhile
        changes nothing.
        """
        found = await self._addresses(target)
        fixed = target.host in self.names
        addresses = [address for address in found if fixed or self.allowed.reaches(target, address)]
        if not addresses:
            said = f"{target.host} leads to {found[0]}, which SESSION_HOSTS does not open by that name alone"
            said += "; a host at a private address must be listed with its port"
            raise RefusedError(403, said, target)
        for address in addresses[:_MOST_TRIES]:
            with contextlib.suppress(OSError):
                return await _connected(str(address), target.port)
        raise RefusedError(502, f"{target} cannot be reached")

    async def _addresses(self, target: Target) -> list[Address]:
        if target.host in self.names:
            return [ipaddress.ip_address(self.names[target.host])]
        if target.address is not None:
            return [target.address]
        try:
            found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise RefusedError(502, f"the name {target.host} cannot be resolved") from error
        addresses = [ipaddress.ip_address(str(place[0]).partition("%")[0]) for *_, place in found]
        return list(dict.fromkeys(addresses))


async def _connected(host: str, port: int, tls: ssl.SSLContext | None = None) -> Connection:
    async with asyncio.timeout(_CONNECT_S):
        return Connection.of(*await asyncio.open_connection(host, port, ssl=tls))


async def _secured(connection: Connection, target: Target) -> None:
    """Begin TLS on a connection, and see that it is the target at its other end."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            await connection.writer.start_tls(ssl.create_default_context(), server_hostname=target.host)
            connection.writer.transport.set_write_buffer_limits(0)  # as `Connection.of`, for the new one
    except OSError as error:
        raise RefusedError(502, f"{target} cannot be reached by TLS: {error}") from error


async def _to_site_proxy(proxy: SiteProxy) -> Connection:
    try:
        return await _connected(proxy.host, proxy.port, ssl.create_default_context() if proxy.tls else None)
    except OSError as error:
        raise RefusedError(502, "the site's proxy cannot be reached") from error


def _site_proxy(name: str, said: Mapping[str, str]) -> SiteProxy | None:
    name = name if said[name] else "ALL_PROXY"
    if not said[name]:
        return None
    text = said[name].strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or _SCHEME_PORTS.get(parts.scheme)
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if not host or not port or parts.scheme not in _SCHEME_PORTS:
        raise SettingsError(
            f"{name} is not the address of a proxy that sessions can be led through",
            hint="set it to http://host:port or https://host:port",
        )
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return SiteProxy(host, port, parts.scheme == "https", login)


def _is_meant(word: str, target: Target) -> bool:
    """Whether an item of NO_PROXY means a target: `*`, a network, a host or domain, each also with a port."""
    if word == "*":
        return True
    if target.address is not None and "/" in word:
        try:
            return target.address in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    host, _, port = word.rpartition(":") if re.search(r"[^:]:[0-9]+$|\]:[0-9]+$", word) else (word, "", "")
    if port and int(port) != target.port:
        return False
    name = host.strip("[]").removeprefix("*").removeprefix(".").removesuffix(".")
    return bool(name) and (target.host == name or target.host.endswith(f".{name}"))
