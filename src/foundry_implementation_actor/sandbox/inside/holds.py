"""Tries to get at other processes, and looks at what this one was given."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from pathlib import Path

from foundry_implementation_actor.sandbox.inside.calling import call
from foundry_implementation_actor.sandbox.inside.first import actor, some, status
from foundry_implementation_actor.sandbox.inside.trying import RefusedError, Scene, attempt, seen

_ATTACH, _SEIZE = 16, 0x4206
_READ_SEARCH = 1 << 2


def _neighbour(scene: Scene) -> int:
    return seen(scene.neighbour, scene.neighbour_since)


@attempt("signals")
def kill_a_neighbour(scene: Scene) -> None:
    """Kill another process of this user."""
    os.kill(_neighbour(scene), signal.SIGKILL)


@attempt("signals")
def signal_by_descriptor(scene: Scene) -> None:
    """Take hold of another process of this user by a descriptor, and signal it."""
    handle = call("pidfd_open", _neighbour(scene), 0)
    try:
        signal.pidfd_send_signal(handle, signal.SIGCONT)
    finally:
        os.close(handle)


@attempt()
def descriptor_of_a_neighbour(scene: Scene) -> None:
    """Take over an open file of another process of this user."""
    handle = call("pidfd_open", _neighbour(scene), 0)
    try:
        os.close(call("pidfd_getfd", handle, 0, 0))
    finally:
        os.close(handle)


@attempt()
def trace_a_neighbour(scene: Scene) -> None:
    """Trace another process of this user."""
    call("ptrace", _SEIZE, _neighbour(scene), 0, 0)


@attempt()
def attach_to_the_actor(scene: Scene) -> None:
    """Trace the actor."""
    call("ptrace", _SEIZE, actor(scene), 0, 0)


def _foreign(name: str, process: int) -> None:
    """Read or write memory at an address that is never mapped: EFAULT says that it was allowed."""
    pair = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    try:
        call(name, process, pair, 1, (ctypes.c_uint64 * 2)(8, 8), 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


@attempt()
def read_memory(scene: Scene) -> None:
    """Read the memory of another process of this user."""
    _foreign("process_vm_readv", _neighbour(scene))


@attempt()
def write_memory(scene: Scene) -> None:
    """Write to the memory of another process of this user."""
    _foreign("process_vm_writev", _neighbour(scene))


@attempt()
def open_memory(scene: Scene) -> None:
    """Open the memory of another process of this user as a file."""
    os.close(os.open(f"/proc/{_neighbour(scene)}/mem", os.O_RDWR))


@attempt()
def environment_of_a_neighbour(scene: Scene) -> str:
    """Read the environment of another process of this user."""
    return Path(f"/proc/{_neighbour(scene)}/environ").read_bytes().decode(errors="replace")


@attempt(by_mark=True)
def environment_of_anybody(_: Scene) -> str:
    """Read the environment of every process that is seen."""
    own, found = Path("/proc/self/environ").read_bytes(), b""
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are enough
        try:
            said = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        found += said if said not in {own, b""} else b""
    if not found:
        raise RefusedError("none can be read but that of this process and its own")
    return some(found)


@attempt("processes-seen")
def arguments_of_a_neighbour(scene: Scene) -> str:
    """Read the arguments of another process of this user."""
    return some(Path(f"/proc/{_neighbour(scene)}/cmdline").read_bytes())


@attempt("limits")
def limits_of_a_neighbour(scene: Scene) -> None:
    """Change a limit of another process of this user."""
    resource.prlimit(_neighbour(scene), resource.RLIMIT_CORE, (0, 0))


@attempt("limits")
def priority_of_a_neighbour(scene: Scene) -> None:
    """Slow another process of this user down."""
    os.setpriority(os.PRIO_PROCESS, _neighbour(scene), 19)


@attempt("reads-as-root")
def capability_to_read(_: Scene) -> str:
    """Have the capability to read every file."""
    if not int(status("CapEff"), 16) & _READ_SEARCH:
        raise RefusedError("it is not there")
    return "it is there"


@attempt("stays-root")
def become_root(_: Scene) -> None:
    """Be root."""
    os.setuid(0)


@attempt()
def open_descriptors(_: Scene) -> str:
    """Use what was left open for this process by mistake."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are enough
        place = Path(f"/proc/self/fd/{name}")
        if int(name) > 2 and place.exists() and not os.readlink(place).startswith("/proc/"):  # noqa: PTH115 - a text
            found.append(os.readlink(place))  # noqa: PTH115 - the same
    if not found:
        raise RefusedError("nothing was")
    return " ".join(found)
