"""The tries that a start of the actor makes too, before its first session: one for each kind of wall.

They import next to nothing, because that is what such a check takes its time for.
"""

from __future__ import annotations

import _socket
import os

from foundry_implementation_actor.sandbox.inside.trying import (
    TRIES,
    RefusedError,
    Scene,
    UntriedError,
    attempt,
    content,
    seen,
)

PATIENCE_S = 0.3
"""How long a try waits for an answer, in seconds."""

_READ_SEARCH = 1 << 2
_DIAGNOSTICS = 4


def write(path: str, flags: int = os.O_WRONLY) -> None:
    """Open a file and write to it."""
    file = os.open(path, flags, 0o644)
    try:
        os.write(file, b"changed")
    finally:
        os.close(file)


def own(scene: Scene, name: str) -> str:
    """A new file in one's own place."""
    path = f"{scene.own}/{name}"
    write(path, os.O_WRONLY | os.O_CREAT)
    return path


def actor(scene: Scene) -> int:
    """The number of the actor's process, when it is seen here."""
    return seen(scene.actor, scene.actor_since)


def some(content: bytes) -> str:
    """What was read; `RefusedError` when that is nothing."""
    if not content:
        raise RefusedError("it reads as empty")
    return content.decode(errors="replace")


def status(name: str) -> str:
    """What the kernel says of this process under a name."""
    for line in content("/proc/self/status").decode(errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    raise RefusedError(f"nothing is said of {name}")


def open_to_append(path: str) -> None:
    """Open to append only: in case that it can be, nothing is written."""
    if not os.path.exists(path):  # noqa: PTH110 - pathlib would double the time of a start
        raise UntriedError(f"there is no {path} here")
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


@attempt()
def open_to_write(scene: Scene) -> None:
    """Open a file to write."""
    write(scene.victim("open-to-write"))


@attempt()
def create(scene: Scene) -> None:
    """Make a new file."""
    write(scene.victim("create.new"), os.O_WRONLY | os.O_CREAT)


@attempt()
def rename_over(scene: Scene) -> None:
    """Move a file of one's own over another."""
    os.rename(own(scene, "rename-over"), scene.victim("rename-over"))  # noqa: PTH104 - no pathlib here


@attempt()
def link_through(scene: Scene) -> None:
    """Write through a symbolic link of one's own."""
    os.symlink(scene.victim("link-through"), f"{scene.own}/link-through")  # noqa: PTH211 - no pathlib here
    write(f"{scene.own}/link-through")


@attempt(by_mark=True)
def lend_rights(scene: Scene) -> None:
    """Make a program that whoever starts it runs with its owner's rights."""
    os.chmod(own(scene, "lend-rights"), 0o4755)  # noqa: PTH101, S103 - no pathlib here; the mode is tried


@attempt("signals")
def signal_the_actor(scene: Scene) -> None:
    """Signal the actor, harmlessly."""
    os.kill(actor(scene), 0)


@attempt()
def environment_of_the_actor(scene: Scene) -> str:
    """Read the environment of the actor."""
    return some(content(f"/proc/{actor(scene)}/environ"))


@attempt()
def capabilities(_: Scene) -> str:
    """Have a capability besides that to read."""
    held = int(status("CapEff"), 16) & ~_READ_SEARCH
    if not held:
        raise RefusedError("there is none")
    return f"{held:x}"


@attempt()
def new_privileges(_: Scene) -> None:
    """Gain rights by starting a program that gives some."""
    if status("NoNewPrivs") == "1":
        raise RefusedError("no start gives new ones")


@attempt()
def core_pattern(_: Scene) -> None:
    """Set the program that the kernel starts on a crash."""
    open_to_append("/proc/sys/kernel/core_pattern")


@attempt()
def kernel_messages(_: Scene) -> None:
    """Ask the kernel for the sockets of everybody."""
    _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, _DIAGNOSTICS).close()


@attempt()
def read_state(scene: Scene) -> str:
    """Read a file of a hidden place."""
    return content(f"{scene.hidden}/secret").decode(errors="replace")


@attempt("network-open")
def connect(scene: Scene) -> None:
    """Connect to a server on the host."""
    one = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    one.settimeout(PATIENCE_S)
    one.connect(("127.0.0.1", scene.tcp))


@attempt()
def datagram(scene: Scene) -> None:
    """Send a datagram to the host."""
    one = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    one.connect(("127.0.0.1", scene.udp))
    one.send(b"x")
    one.settimeout(PATIENCE_S)
    one.recv(1)


FIRST = tuple(TRIES)
"""Their names."""
