"""A session's own loopback: what it reaches there without the proxy, and what an operator may mistake for this host."""

from __future__ import annotations

from collections.abc import Iterator

from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.egress.allowed import Allowed, Entry, Target
from foundry_implementation_actor.egress.proxy import HOST_NAME

OWN = ("localhost", "127.0.0.1", "127.0.0.2", "::1")
"""The names of a session's own servers, which its programs never ask the proxy for."""


def mistaken(hosts: Allowed) -> Iterator[Finding]:
    """A warning for each item of SESSION_HOSTS that lets a held session reach nothing, with the item that would.

    Inside a sandbox these names are the session's own loopback, asked for directly: this host's is not there.

    Args:
        hosts: what sessions may reach. With everything open the network is the host's, and nothing is mistaken.
    """
    for entry in () if hosts.is_open else hosts.entries:
        if entry.host.removeprefix("*.") in OWN:
            seen = f"{_as_listed(entry)} is the session's own loopback, which leads to no server of this host"
            meant = HOST_NAME if entry.port is None else f"{HOST_NAME}:{entry.port}"
            mend = f"list {meant}, and have sessions call the server by that name"
            yield Finding("SESSION_HOSTS", State.WARNING, seen, mend)


def _as_listed(entry: Entry) -> str:
    return entry.host if entry.port is None else str(Target(entry.host, entry.port))
