"""The ways out of a sandbox without a network: sockets that the actor listens on, and nothing else.

A socket belongs to the network namespace that it was made in. Where a command gets a namespace of its own,
the listening sockets are made inside it, before the program starts, and come out to the actor over a
socket pair: the actor accepts on them directly, and no relay process is needed. Where it gets none, the actor
listens on loopback itself, and the kernel lets the command connect to those ports only.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from foundry_implementation_actor.domain.error import ActorError, Code

_BACKLOG = 128
_PROXY = ("127.0.0.1", 3128)
_GATE = ("127.0.0.2", 3129)


class Door(NamedTuple):
    """Where the command connects to: a loopback address, as it is inside, and a TCP port."""

    address: str
    port: int


class Listeners(NamedTuple):
    """Sockets that listen, the caller's to close: the proxy's and, when it was asked for, the gate's."""

    proxy: socket.socket
    gate: socket.socket | None


@dataclass(frozen=True)
class Doors:
    """The ways out of one command: where they are inside, and how the actor comes by their listeners.

    `inside` is the far end of the socket pair for a command with a network of its own, else None.
    """

    proxy: Door
    gate: Door | None
    near: socket.socket | None = None
    inside: socket.socket | None = None
    made: Listeners | None = None

    @property
    def all(self) -> tuple[Door, ...]:
        """Every door, the proxy's first."""
        return (self.proxy,) if self.gate is None else (self.proxy, self.gate)

    def listeners(self, timeout_s: float) -> Listeners:
        """The sockets to accept on. Ask once, after the command was started; they are the caller's to close.

        Args:
            timeout_s: how long to wait for the command to have got so far, in seconds.

        Raises:
            ActorError: UNFIT when they did not come in that time, or the command ended before.
        """
        if self.made is not None:
            return Listeners(self.made.proxy.dup(), self.made.gate.dup() if self.made.gate else None)
        assert self.near is not None
        if self.inside is not None:
            self.inside.close()  # so that the end of the command is the end of the wait
        self.near.settimeout(timeout_s)
        try:
            _, descriptors, _, _ = socket.recv_fds(self.near, 1, len(self.all))
        except OSError as error:
            raise ActorError(Code.UNFIT, f"the sandbox opened no way out within {timeout_s:g} seconds") from error
        sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(sockets) != len(self.all):
            for one in sockets:
                one.close()
            raise ActorError(Code.UNFIT, "the sandbox ended before it had opened its ways out")
        return Listeners(sockets[0], sockets[1] if self.gate else None)


@contextlib.contextmanager
def inside_doors(*, gate: bool) -> Iterator[Doors]:
    """Doors of a command that gets a network of its own, on fixed ports there."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        yield Doors(Door(*_PROXY), Door(*_GATE) if gate else None, near, far)


@contextlib.contextmanager
def host_doors(*, gate: bool) -> Iterator[Doors]:
    """Doors on the host's own loopback, on ports that nobody had."""
    with contextlib.ExitStack() as opened:
        try:
            made = Listeners(_listen(opened), _listen(opened) if gate else None)
        except OSError as error:
            raise ActorError(Code.UNFIT, f"no socket for the way out of the sandbox: {error.strerror}") from error
        yield Doors(_door(made.proxy), _door(made.gate) if made.gate else None, made=made)


def _listen(opened: contextlib.ExitStack) -> socket.socket:
    listener = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    listener.bind(("127.0.0.1", 0))
    listener.listen(_BACKLOG)
    return listener


def _door(listener: socket.socket) -> Door:
    address, port = listener.getsockname()
    return Door(address, port)
