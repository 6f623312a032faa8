"""Tries to read what is nobody's business, and to reach what is not on the way out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from foundry_implementation_actor.sandbox.inside.first import PATIENCE_S
from foundry_implementation_actor.sandbox.inside.trying import RefusedError, Scene, UntriedError, attempt

_FAST_OPEN = 0x20000000
_MULTIPATH = 262
_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key")


@attempt()
def read_state_by_a_link(scene: Scene) -> str:
    """Read a file of a hidden place through a link of one's own."""
    link = Path(f"{scene.own}/read-state-by-a-link")
    link.symlink_to(f"{scene.hidden}/secret")
    return link.read_text()


@attempt()
def read_state_by_a_process(scene: Scene) -> str:
    """Read a file of a hidden place by the root of another process of this user."""
    return Path(f"/proc/{scene.neighbour}/root{scene.hidden}/secret").read_text()


@attempt()
def copy_state(scene: Scene) -> str:
    """Give a file of a hidden place a second name in one's own place."""
    os.link(f"{scene.hidden}/secret", f"{scene.own}/copy-state")
    return Path(f"{scene.own}/copy-state").read_text()


@attempt()
def list_state(scene: Scene) -> str:
    """List a hidden place."""
    found = os.listdir(scene.hidden)  # noqa: PTH208 - names are enough
    if not found:
        raise RefusedError("it is empty")
    return " ".join(found)


@attempt("metadata")
def look_at_state(scene: Scene) -> str:
    """Ask for the size of a file in a hidden place."""
    return str(Path(f"{scene.hidden}/secret").stat().st_size)


@attempt()
def write_state(scene: Scene) -> None:
    """Make a file in a hidden place."""
    Path(f"{scene.hidden}/write-state.new").write_bytes(b"x")


@attempt()
def read_home(scene: Scene) -> str:
    """Read a file in the home of the actor's user."""
    if not scene.home:
        raise UntriedError("that home has no file")
    return Path(scene.home).read_bytes()[:16].hex()


@attempt()
def write_home(scene: Scene) -> None:
    """Make a file in the home of the actor's user."""
    Path(os.path.dirname(scene.home) or "/root").joinpath(f"try-{scene.mark}").write_bytes(b"x")  # noqa: PTH120


@attempt()
def passwords(_: Scene) -> str:
    """Read the host's passwords and keys."""
    found = [place for place in map(Path, _SECRETS) if place.exists()]
    if not found:
        raise UntriedError("there are none here")
    problems: list[OSError] = []
    for place in found:
        try:
            said = place.read_bytes()
        except OSError as error:
            problems.append(error)
        else:
            if said:
                return str(place)
    if problems:
        raise problems[0]
    raise RefusedError("they read as empty")


@attempt("host-sockets")
def socket_in_hidden(scene: Scene) -> None:
    """Connect to a daemon's socket in a hidden place."""
    _connect_local(f"{scene.hidden}/socket")


@attempt("host-sockets")
def socket_outside(scene: Scene) -> None:
    """Connect to a daemon's socket in a place that is seen."""
    _connect_local(f"{scene.outside}/socket")


@attempt("nameless-sockets")
def nameless_socket(scene: Scene) -> None:
    """Connect to a daemon's socket without a place in the file system."""
    _connect_local(f"\0{scene.abstract}")


def _connect_local(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(PATIENCE_S)
        one.connect(address)


def _connect(family: int, address: tuple[str, int], protocol: int = 0) -> None:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as one:
        one.settimeout(PATIENCE_S)
        one.connect(address)


@attempt("network-open")
def connect_6(scene: Scene) -> None:
    """Connect to a server on the host by IPv6."""
    if not scene.tcp6:
        raise UntriedError("the host has no IPv6")
    _connect(socket.AF_INET6, ("::1", scene.tcp6))


@attempt()
def connect_many_paths(scene: Scene) -> None:
    """Connect to a server on the host by multipath TCP, on which Landlock does not rule."""
    _connect(socket.AF_INET, ("127.0.0.1", scene.tcp), _MULTIPATH)


@attempt()
def connect_fast(scene: Scene) -> None:
    """Send to a server on the host with the first packet, without connecting."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.settimeout(PATIENCE_S)
        one.sendto(b"x", _FAST_OPEN, ("127.0.0.1", scene.tcp))


@attempt("same-port-elsewhere")
def same_port_elsewhere(scene: Scene) -> None:
    """Connect to another address at the port of the way out."""
    if not scene.elsewhere:
        raise UntriedError("there is no way out")
    _connect(socket.AF_INET, ("127.0.0.3", scene.elsewhere))


@attempt()
def raw_packets(_: Scene) -> None:
    """Make packets by hand."""
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@attempt()
def echo_request(scene: Scene) -> None:
    """Send an echo request to the host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as one:
        one.settimeout(PATIENCE_S)
        one.sendto(b"\x08\x00" + bytes(6) + scene.mark.encode(), ("127.0.0.1", 0))
        one.recv(64)


@attempt()
def link_packets(_: Scene) -> None:
    """Listen to every packet of the host."""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close()


@attempt()
def virtual_machine(_: Scene) -> None:
    """Talk to what the host runs on, past every network."""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()


@attempt("network-open")
def listen_on_the_host(_: Scene) -> None:
    """Listen where others of the host connect to."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
    _judge_the_network()


@attempt("listen-unbound")
def listen_unbound(_: Scene) -> None:
    """Listen without having asked for an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.listen()
    _judge_the_network()


def _judge_the_network() -> None:
    hosts = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    if hosts == ["lo"]:
        raise RefusedError("nobody else is on this network")
