"""The sandbox without namespaces: rules on files and TCP, a filter of system calls, and a plain user.

For an ordinary Pod, where namespaces are refused. The actor builds the rule set and the filter; the
supervisor's forked process takes them on right before the program starts, so that nothing runs in between.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Confinement
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox import rules
from foundry_implementation_actor.sandbox.allowed import readable
from foundry_implementation_actor.sandbox.doors import Doors, host_doors
from foundry_implementation_actor.sandbox.hand_over import hand_over, may_switch
from foundry_implementation_actor.sandbox.layout import Layout, Seen, lay_out
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.sandbox.places import plain_user
from foundry_implementation_actor.sandbox.port import Gap, Network, View
from foundry_implementation_actor.sandbox.seccomp import filter_for, machine

_USED_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a place to rule on

_ALWAYS = (
    Gap("metadata", "names can be asked for one by one, and times and sizes be seen, also in hidden places"),
    Gap("same-port-elsewhere", "the port of the way out can be reached on every host that the kernel routes to"),
    Gap("host-sockets", "sockets in the file system that the user may write to can be connected to"),
    Gap("listen-unbound", "a TCP socket that listens without an address gets a port of the host's"),
    Gap("shared-memory", "shared memory is the host's: what a session of the same user leaves there can be read"),
    Gap("processes-seen", "the host's processes and their arguments are seen, though not their environment or memory"),
    Gap("own-loopback", "servers that the command starts on loopback cannot be connected to by itself"),
    Gap("limits", "priorities and limits of other processes of the same user can be changed"),
    Gap("ipc", "System V memory and message queues of the same user on this host can be used"),
)
_SAME_USER = (
    Gap(
        "chmod", "mode, owner, times and attributes of the actor's own files outside can be changed, not their content"
    ),
    Gap("terminals", "terminals of the actor's own user can be written to"),
)
_STAYS_ROOT = Gap(
    "stays-root", "the actor is root and may not switch here: a command is root too, without a capability"
)
_READS_ALL = Gap(
    "reads-as-root",
    "where a needed place lies in a folder closed to plain users, all files outside of hidden places can be read",
)


NETWORK_OPEN = Gap(
    "network-open", "the kernel does not rule on TCP: a command that has a way out can connect to every host past it"
)
"""Of a kernel below 6.7. Who takes this sandbox has to know of it."""

_DEVICES = Gap("device-control", "the kernel does not rule on what a device that may be opened is told to do")
_NOT_SCOPED = (
    Gap("signals", "processes of the same user can be signalled and ended, the actor too where it is a plain user"),
    Gap("nameless-sockets", "sockets of the host without a name in the file system can be connected to"),
)


class Landlock:
    """Runs a command under rules that it cannot leave, and where the actor is root, as `nobody`.

    `version` is the ABI that it makes use of, by default all of this kernel's: with a lower one it is what it
    would be on an older kernel. With `reads_all`, a command that runs as `nobody` may read what only this user may,
    outside of hidden places.
    """

    name = "landlock"

    def __init__(self, version: int | None = None, *, reads_all: bool = False) -> None:
        self._version = rules.abi() if version is None else version
        self._reads_all = reads_all

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What Landlock does not see, what this kernel's does not yet, and what depends on the user."""
        known = (*_ALWAYS, *_missing_rules(self._version))
        if may_switch():
            return (*known, _READS_ALL)
        return (*known, *_SAME_USER, *((_STAYS_ROOT,) if os.getuid() == 0 else ()))

    @contextlib.contextmanager
    def confine(self, command: Command, view: View) -> Iterator[Command]:
        """The command with what its process takes on; see `Sandbox`."""
        layout = lay_out(command, view)
        user, reads_all = (os.getuid(), os.getgid()), False
        if may_switch():
            user, reads_all = plain_user(), hand_over(view, layout) or self._reads_all
            layout = layout if reads_all else replace(layout, closed=())
            command = replace(command, env=_trusting(command))
        with ExitStack() as held:
            ruled = held.enter_context(_rule_set(layout, view, rules.handled(self._version)))
            tcp_ruled = self._version >= rules.TCP_FROM
            calls = filter_for(view.network, own_network=False, tcp_ruled=tcp_ruled)
            filtered = held.enter_context(in_memory(calls))
            yield replace(command, confinement=Confinement(ruled, filtered, user, reads_all))

    def doors(self, *, gate: bool = False) -> AbstractContextManager[Doors]:
        """Doors on the host's loopback; see `Sandbox`."""
        return host_doors(gate=gate)


def _missing_rules(version: int) -> tuple[Gap, ...]:
    """What a kernel whose Landlock has this ABI does not rule on, though later ones do."""
    return (
        *((NETWORK_OPEN,) if version < rules.TCP_FROM else ()),
        *((_DEVICES,) if version < rules.DEVICES_FROM else ()),
        *(_NOT_SCOPED if version < rules.SCOPES_FROM else ()),
    )


@contextlib.contextmanager
def _rule_set(layout: Layout, view: View, known: rules.Handled) -> Iterator[int]:
    refused = known if view.network is not Network.OPEN else known._replace(ports=0)
    with rules.closing(rules.create(refused)) as ruled:
        for path, is_folder in readable(layout):
            rules.allow_below(ruled, path, rules.READ if is_folder else rules.READ & rules.ON_FILES)
        for place in layout.places:
            if place.seen is Seen.WRITABLE:
                _open_up(ruled, place.path)
        _allow_devices(ruled, known.files)
        if view.network is Network.PROXIED:
            if view.doors is None:
                raise ActorError(Code.BUG, "a view that is PROXIED needs the doors of the same sandbox")
            for door in view.doors.all if known.ports else ():
                rules.allow_port(ruled, door.port, rules.CONNECT)
        yield ruled


def _open_up(ruled: int, folder: str) -> None:
    """Let a folder be changed, unless it became a link after it was judged."""
    place = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    with rules.closing(place):
        if str(Path(f"/proc/self/fd/{place}").readlink()) != folder or not stat.S_ISDIR(os.fstat(place).st_mode):
            raise ActorError(Code.UNFIT, "a place that a sandboxed command may change was replaced", where=folder)
        rules.allow_open(ruled, place, rules.READ | rules.WRITE)


def _allow_devices(ruled: int, known: int) -> None:
    for name in _USED_DEVICES:
        path = Path("/dev") / name
        of_place = rules.READ_FOLDER if path.is_dir() else 0
        use = rules.READ_FILE | rules.WRITE_FILE | rules.DEVICE_CONTROL | of_place
        rules.allow_below(ruled, str(path), use & known)
    rules.allow_below(ruled, _SHARED_MEMORY, rules.READ_FILE | rules.READ_FOLDER | rules.WRITE)


def _trusting(command: Command) -> dict[str, str]:
    """The environment in which git works in a tree that partly belongs to another user, which this one is."""
    count = int(command.env.get("GIT_CONFIG_COUNT", "0"))
    trust = {f"GIT_CONFIG_KEY_{count}": "safe.directory", f"GIT_CONFIG_VALUE_{count}": "*"}
    return {**command.env, **trust, "GIT_CONFIG_COUNT": str(count + 1)}


def missing() -> str:
    """Why this sandbox cannot be had here, as far as one can say without trying; empty when it may."""
    if rules.abi() < rules.NEEDED:
        return f"the kernel's Landlock is of version {rules.abi()}, and {rules.NEEDED} is needed (Linux 6.2)"
    return "" if machine() else "the system calls of this machine are not known"
