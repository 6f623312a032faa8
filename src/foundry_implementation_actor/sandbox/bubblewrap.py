"""The sandbox with namespaces: a private view of the files, of processes, and of the network."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from foundry_implementation_actor.domain.command import Command, Confinement
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox import places, rules
from foundry_implementation_actor.sandbox.doors import Doors, inside_doors
from foundry_implementation_actor.sandbox.layout import Layout, Place, Seen, lay_out
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.sandbox.port import Gap, Network, View
from foundry_implementation_actor.sandbox.seccomp import filter_for, machine

PROGRAM = "bwrap"
SCRATCH_BYTES = 256 * 1024 * 1024
"""What `/tmp`, `/var/tmp` and `/dev/shm` may hold inside, each; they lie in memory."""

_SOCKETS = Gap(
    "late-host-sockets",
    "a socket that a daemon of the host opens outside of /run, /tmp and homes after the command began can be reached",
)
_METADATA = Gap("system-readable", "what any user of the host may read outside of hidden places can be read")
_AS_ROOT = Gap(
    "root-readable",
    "what only root may read is covered where hosts keep secrets (/etc, /var, /opt, …), not wherever it may lie",
)
_OPEN = Gap("loopback-when-open", "with the network open, servers on the host's loopback are reached too")
_NAMELESS = Gap(
    "nameless-sockets", "with the network open, so are sockets of the host without a name in the file system"
)


class Bubblewrap:
    """Runs a command in namespaces of its own, without a capability, as a plain user who owns what it writes."""

    name = "bubblewrap"

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What a private view does not cover; root may read more than others."""
        older = (_NAMELESS,) if rules.abi() < rules.SCOPES_FROM else ()
        return (*((_AS_ROOT,) if os.getuid() == 0 else ()), _METADATA, _SOCKETS, _OPEN, *older)

    @contextlib.contextmanager
    def confine(self, command: Command, view: View) -> Iterator[Command]:
        """The command in `bwrap`; see `Sandbox`."""
        layout = lay_out(command, view)
        with ExitStack() as held:
            filtered = held.enter_context(in_memory(filter_for(view.network, own_network=True)))
            argv = (
                shutil.which(PROGRAM) or PROGRAM, *_files(layout), *NAMESPACES, *_user(), *_network(view),
                "--seccomp", str(filtered), "--chdir", str(command.cwd), "--", *command.argv,
            )  # fmt: skip
            confinement = _confinement(view, held)
            yield replace(command, argv=argv, pass_fds=(*command.pass_fds, filtered), confinement=confinement)

    def doors(self, *, gate: bool = False) -> AbstractContextManager[Doors]:
        """Doors inside the command's own network; see `Sandbox`."""
        return inside_doors(gate=gate)


NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL",
    "--die-with-parent", "--new-session",
)  # fmt: skip


def base() -> list[str]:
    """The whole host read-only, with devices and processes of its own, and no setting of the kernel."""
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc"]
    # One mount where there could be nine: each reads the whole table of mounts.
    return [*view, "--remount-ro", "/proc"] if places.kernel_settings() else view


def closed_off(paths: Iterable[str]) -> list[str]:
    """These files and folders, seen as empty ones; what is put into such a folder is kept nowhere.

    `bwrap` reads the whole table of mounts for each that is read-only, so that those folders are not.
    """
    words = []
    for path in paths:
        words += ["--size", "4096", "--perms", "0555", "--tmpfs", path] if places.is_folder(path) else _blank(path)
    return words


def _files(layout: Layout) -> list[str]:
    view = base()
    for place in layout.places:
        view += _mount(place, scratch=place.path in layout.scratch)
    view += closed_off((*layout.closed, *_sockets(layout)))
    # Read-only last, when all that lies in them is mounted.
    for place in layout.places:
        if place.seen is Seen.HIDDEN and place.path not in layout.scratch and places.is_folder(place.path):
            view += ["--remount-ro", place.path]
    return view


def _mount(place: Place, *, scratch: bool) -> list[str]:
    if place.seen is Seen.WRITABLE:
        return ["--bind", place.path, place.path]
    if place.seen is Seen.SHOWN:
        return ["--ro-bind", place.path, place.path]
    if not places.is_folder(place.path):
        return _blank(place.path)
    size = ["--size", str(SCRATCH_BYTES), "--perms", "1777"] if scratch else []
    return [*size, "--tmpfs", place.path]


def _blank(place: str) -> list[str]:
    return ["--ro-bind", os.devnull, place]


def _sockets(layout: Layout) -> list[str]:
    """The sockets that are still seen; a read-only mount does not keep anybody from connecting."""
    return [place for place in places.daemon_sockets() if not layout.hides(place) and not layout.opens(place)]


def _user() -> list[str]:
    """Root is `nobody` inside; a plain user stays who it is."""
    if os.getuid() != 0:
        return []
    uid, gid = places.plain_user()
    return ["--uid", str(uid), "--gid", str(gid)]


def _network(view: View) -> list[str]:
    return ["--unshare-net"] if view.network is Network.CLOSED else []


def _confinement(view: View, held: ExitStack) -> Confinement | None:
    if view.network is Network.OPEN:
        scope = rules.scope()
        return None if scope < 0 else Confinement(rules=held.enter_context(rules.closing(scope)))
    if view.network is Network.CLOSED:
        return None
    if view.doors is None or view.doors.inside is None:
        raise ActorError(Code.BUG, "a view that is PROXIED needs the doors of the same sandbox")
    return Confinement(wire=view.doors.inside.fileno(), doors=view.doors.all)


def missing() -> str:
    """Why this sandbox cannot be had here, as far as one can say without trying; empty when it may."""
    if shutil.which(PROGRAM) is None:
        return "bubblewrap is not installed"
    return "" if machine() else "the system calls of this machine are not known"
