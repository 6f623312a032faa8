"""What a self-check sets up outside of a sandbox, and how it sees afterwards what got through."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import secrets
import socket
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Confinement
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.doors import Doors
from foundry_implementation_actor.sandbox.ground import ground
from foundry_implementation_actor.sandbox.hand_over import may_switch
from foundry_implementation_actor.sandbox.inside.run import TRIES, Scene
from foundry_implementation_actor.sandbox.places import plain_user
from foundry_implementation_actor.sandbox.port import Network, View
from foundry_implementation_actor.system.process import Child, Stream

PACKAGE = Path(__file__).resolve().parents[1]
_START_S = 10.0
_REMOVE_SEGMENT = 0


@dataclass
class Stage:
    """Folders, sockets and perhaps a neighbour, as the tries find them. `token` is what nobody inside may read."""

    base: Path
    token: str
    scene: Scene
    neighbour: Child | None
    tcp: tuple[socket.socket, ...]
    udp: socket.socket
    before: dict[str, tuple[object, ...]]

    def view(self, doors: Doors | None) -> View:
        """What the tries may see and change."""
        return View(
            (self.base / "own",), self.base / "home", self.base / "temporary",
            hidden=(self.base,), shown=(self.base / "outside", PACKAGE),
            network=Network.CLOSED if doors is None else Network.PROXIED, doors=doors,
        )  # fmt: skip

    def got_through(self) -> set[str]:
        """The tries that left a mark where they should not have been, whatever they said themselves."""
        now = _states(self.base)
        changed = {path for path in {*now, *self.before} if now.get(path) != self.before.get(path)}
        names = {Path(path).name.removesuffix(".new") for path in changed} & TRIES.keys()
        own = self.base / "own"
        seen = {
            "kill-a-neighbour": self.neighbour is not None and self.neighbour.read(0.0).stream is not Stream.QUIET,
            "make-device": (own / "make-device").is_block_device(),
            **{name: _lends_rights(own / name) for name in ("lend-rights", "lend-rights-at-once")},
            "daemon": _is_held(own / "daemon"),
            "connect": any(map(_has_news, self.tcp)),
            "datagram": _has_news(self.udp),
            "shared-memory": _unlinked(Path(f"/dev/shm/try-{self.scene.mark}")),  # noqa: S108 - the place is tried
            "shared-segment": _segment_removed(int(self.scene.mark, 16) & 0x7FFFFFFF),
            "write-home": _unlinked(Path(os.path.dirname(self.scene.home) or "/root") / f"try-{self.scene.mark}"),  # noqa: PTH120 - a text
        }
        return names | {name for name, through in seen.items() if through}


@contextlib.contextmanager
def staged(doors: Doors | None, names: Collection[str]) -> Iterator[Stage]:
    """A stage for tries of these names, gone afterwards with all that was started on it.

    There is a neighbour when all tries are to be made: no process is started for fewer.

    Raises:
        ActorError: UNFIT when a program as plain as `sleep` cannot be run here.
    """
    with ExitStack() as held:
        base = held.enter_context(ground())
        base.chmod(0o755)
        token, mark = secrets.token_hex(16), secrets.token_hex(8)
        for name in ("outside", "own", "home", "temporary", "hidden"):
            (base / name).mkdir()
        for name in names:
            (base / "outside" / name).write_bytes(b"kept")
        (base / "hidden" / "secret").write_text(token)
        (base / "hidden").chmod(0o755)
        for place in ("hidden", "outside"):
            _local(held, str(base / place / "socket"))
            (base / place / "socket").chmod(0o777)
        _local(held, f"\0{mark}")
        tcp, udp = _internet(held, socket.SOCK_STREAM), _internet(held, socket.SOCK_DGRAM)
        tcp6 = _internet_6(held)
        elsewhere = _elsewhere(held, doors)
        neighbour = held.enter_context(Child(_sleeper(base, token))) if len(names) == len(TRIES) else None
        pid, since = _identity(neighbour)
        scene = Scene(
            outside=str(base / "outside"), hidden=str(base / "hidden"), own=str(base / "own"), home=_file_of_home(),
            neighbour=pid, neighbour_since=since, actor=os.getpid(), actor_since=_since(os.getpid()),
            tcp=_port(tcp), tcp6=_port(tcp6), udp=_port(udp), elsewhere=_port(elsewhere), abstract=mark,
            proxy=doors.proxy.port if doors else 0, mark=mark,
        )  # fmt: skip
        listening = tuple(one for one in (tcp, tcp6) if one is not None)
        yield Stage(base, token, scene, neighbour, listening, udp, _states(base))


def _sleeper(base: Path, token: str) -> Command:
    """A process of the user that the tries run as, which holds the token in its environment."""
    line = "echo $$; exec sleep 60"
    command = Command(("/bin/sh", "-c", line), base, {"PATH": os.defpath, "TOKEN": token}, 60.0)
    return replace(command, confinement=Confinement(user=plain_user())) if may_switch() else command


def _identity(child: Child | None) -> tuple[int, int]:
    """The number of a process, which it prints first, and when it was started; zeros for none."""
    if child is None:
        return 0, 0
    output = child.read(_START_S)
    if output.stream is not Stream.STDOUT:
        raise ActorError(Code.UNFIT, "no program could be run beside the sandbox")
    return int(output.chunk), _since(int(output.chunk))


def _since(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19])


def _local(held: ExitStack, address: str) -> None:
    one = held.enter_context(socket.socket(socket.AF_UNIX))
    one.bind(address)
    one.listen()


def _internet(held: ExitStack, kind: socket.SocketKind) -> socket.socket:
    one = held.enter_context(socket.socket(socket.AF_INET, kind))
    one.bind(("127.0.0.1", 0))
    if kind is socket.SOCK_STREAM:
        one.listen()
    one.setblocking(False)
    return one


def _internet_6(held: ExitStack) -> socket.socket | None:
    try:
        one = held.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_STREAM))
        one.bind(("::1", 0))
        one.listen()
    except OSError:
        return None
    one.setblocking(False)
    return one


def _elsewhere(held: ExitStack, doors: Doors | None) -> socket.socket | None:
    """A server at another address with the port of the way out."""
    if doors is None:
        return None
    one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    try:
        one.bind(("127.0.0.3", doors.proxy.port))
    except OSError:
        return None
    one.listen()
    return one


def _port(one: socket.socket | None) -> int:
    return int(one.getsockname()[1]) if one is not None else 0


def _file_of_home() -> str:
    """Some file of this user's home that it can read."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - stays a text
    with contextlib.suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and entry.stat().st_size and os.access(entry.path, os.R_OK):
                return entry.path
    return ""


def _states(base: Path) -> dict[str, tuple[object, ...]]:
    """Everything in the places that are not to be changed: kind, mode, owner, links, time, content, attributes."""
    found: dict[str, tuple[object, ...]] = {}
    for place in ("outside", "hidden"):
        for path in (base / place).rglob("*"):
            seen = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
            known = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, seen.st_mtime_ns)
            found[str(path)] = (*known, content, tuple(os.listxattr(path, follow_symlinks=False)))
    return found


def _is_held(file: Path) -> bool:
    """Whether somebody still holds the lock on a file."""
    if not file.exists():
        return False
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _lends_rights(file: Path) -> bool:
    return file.exists() and bool(file.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID))


def _has_news(one: socket.socket) -> bool:
    try:
        one.accept()[0].close() if one.type is socket.SOCK_STREAM else one.recv(64)
    except OSError:
        return False
    return True


def _unlinked(path: Path) -> bool:
    """Whether a file was there; it is not any more."""
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def _segment_removed(key: int) -> bool:
    """Whether there was System V memory of this key; there is none any more."""
    libc = ctypes.CDLL(None)
    segment = int(libc.shmget(key, 0, 0))
    return segment >= 0 and int(libc.shmctl(segment, _REMOVE_SEGMENT, None)) == 0
