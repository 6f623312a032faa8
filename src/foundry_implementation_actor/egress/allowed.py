"""Which hosts a session may reach: the operator's list, and what a name or an address counts as.

A host is compared in one spelling only. What could be read as an address but is not written the usual
way (`2130706433`, `0x7f.1`, `0177.0.0.1`) is no host at all, so that it cannot pass for another.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = (443, 80)
"""The ports of a listed host without one of its own."""

ANY = "*"

_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Resolvers read a name as an IPv4 address when its last part is a number, in any of C's notations.
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_LONGEST_NAME = 253
_SHOWN = 60
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Where clouds hand out credentials to whoever asks, besides the link-local 169.254.169.254.
_METADATA = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")),
)


@dataclass(frozen=True)
class Target:
    """Where a connection should go: a host in its one spelling, and a port.

    `address` is the host as an address when it is one, so that no resolver has a say.
    """

    host: str
    port: int
    address: Address | None = None

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}"

    @classmethod
    def of(cls, host: str, port: int) -> Self:
        """The target of a host as somebody wrote it, without brackets.

        Raises:
            ValueError: it is no host or no port; the message goes on after the host's name.
        """
        if not 1 <= port <= 65535:
            raise ValueError("has a port that is not between 1 and 65535")
        name = host.lower().removesuffix(".")
        address = _address(name)
        if address is not None:
            return cls(str(address), port, address)
        if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
            raise ValueError("is not the name of a host")
        if _ENDS_IN_A_NUMBER.fullmatch(name):
            raise ValueError("is an address in a spelling that is not taken; write it as four decimal numbers")
        return cls(name, port)


@dataclass(frozen=True)
class Entry:
    """One item of the list: a host, `*.` and a domain, or `*`; `port` is None for the usual ones."""

    host: str
    port: int | None = None

    def covers(self, target: Target) -> bool:
        """Whether this item lists the target's host and port."""
        if self.host == ANY:
            return True
        if target.port not in (DEFAULT_PORTS if self.port is None else (self.port,)):
            return False
        if self.host.startswith("*."):
            return target.address is None and target.host.endswith(self.host[1:])
        return target.host == self.host


@dataclass(frozen=True)
class Allowed:
    """The hosts that a session may reach; none when there are no entries."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read SESSION_HOSTS: a comma list of `host`, `host:port`, `*.domain` (its subdomains) and `*`.

        A host without a port is reachable at 443 and 80.

        Raises:
            ValueError: the rest of a sentence that starts with the variable's name; it names the item.
        """
        return cls(tuple(_entry(item) for part in text.split(",") if (item := part.strip())))

    def and_also(self, host: str, port: int) -> Self:
        """The same list with one more host at one port, as the wiring adds the model's own."""
        target = Target.of(host, port)
        return type(self)((*self.entries, Entry(target.host, target.port)))

    @property
    def is_open(self) -> bool:
        """Whether the operator opened everything."""
        return any(entry.host == ANY for entry in self.entries)

    def lists(self, target: Target) -> bool:
        """Whether the target's host and port are listed, whatever the name resolves to."""
        return any(self._covering(target))

    def reaches(self, target: Target, address: Address) -> bool:
        """Whether a listed target may be connected to at an address that its name resolved to.

        A public address always. A private or loopback one only for a host that is listed with its
        port, since whoever owns a name can point it anywhere. A link-local one, and those at which
        clouds hand out credentials, only when the address itself is listed.
        """
        if any(entry.host == target.host for entry in self._covering(target)) and target.address is not None:
            return True
        meant = _meant(address)
        if _is_nobodys(meant):
            return False
        with_port = any(entry.port is not None or entry.host == ANY for entry in self._covering(target))
        return with_port or meant.is_global

    def _covering(self, target: Target) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.covers(target))


def split_port(text: str) -> tuple[str, str | None]:
    """A host without its brackets, and what stands after its colon; None when there is no colon.

    Raises:
        ValueError: brackets do not match, or a bare IPv6 address is followed by more.
    """
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError("has brackets that hold no address")
        return host, rest[1:] if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def port_of(text: str) -> int:
    """A port in ASCII digits.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(r"[0-9]{1,5}", text):
        raise ValueError("has a port that is not a number")
    return int(text)


def _entry(item: str) -> Entry:
    if item == ANY:
        return Entry(ANY)
    if "@" in item:  # not shown: what stands before it is a login
        raise ValueError("holds a login, and a host needs none; write host or host:port")
    shown = repr(item if len(item) <= _SHOWN else f"{item[:_SHOWN]}…")
    if "/" in item:
        raise ValueError(f"holds {shown}, which is more than a host; write host or host:port")
    try:
        host, port = split_port(item)
        wild, name = host.startswith("*."), host.removeprefix("*.")
        target = Target.of(name, DEFAULT_PORTS[0] if port is None else port_of(port))
    except ValueError as error:
        hint = "write host, host:port, *.domain or * alone"
        raise ValueError(f"holds {shown}, which {str(error).partition('; ')[0]}; {hint}") from error
    if wild and target.address is not None:
        raise ValueError(f"holds {shown}, which is an address below a star; write the address")
    return Entry(f"*.{target.host}" if wild else target.host, None if port is None else target.port)


def _address(name: str) -> Address | None:
    """The address that a name is, an IPv4 one written inside of IPv6 as itself; None when it is a name."""
    if "%" in name:  # an interface of this host
        return None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 one leads to, when it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_nobodys(address: Address) -> bool:
    """Whether no name of a server that somebody wants to reach leads there."""
    if address.is_loopback:  # `::1` lies in a range that is reserved
        return False
    special = address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved
    return special or address in _METADATA
