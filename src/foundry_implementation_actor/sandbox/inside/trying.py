"""What a try is, and what it is given: the scene that the self-check has set outside."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_NUMBERS_X86 = {
    "ptrace": 101, "shmget": 29, "add_key": 248, "keyctl": 250, "bpf": 321, "perf_event_open": 298,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "process_vm_readv": 310, "process_vm_writev": 311,
    "mount": 165, "umount2": 166, "pivot_root": 155, "unshare": 272, "setns": 308, "userfaultfd": 323, "syslog": 103,
}  # fmt: skip
_NUMBERS_ARM = {
    "ptrace": 117, "shmget": 194, "add_key": 217, "keyctl": 219, "bpf": 280, "perf_event_open": 241,
    "open_by_handle_at": 265, "name_to_handle_at": 264, "process_vm_readv": 270, "process_vm_writev": 271,
    "mount": 40, "umount2": 39, "pivot_root": 41, "unshare": 97, "setns": 268, "userfaultfd": 282, "syslog": 116,
}  # fmt: skip
_NUMBERS_LATER = {
    "pidfd_open": 434, "pidfd_getfd": 438, "io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "mount_setattr": 442,
}  # fmt: skip


class Scene(NamedTuple):
    """Paths, ports and processes. `outside` is seen and not writable; `hidden` is not to be seen.

    `own` may be written to. `neighbour` is another process of the user that the tries run as; `token` stands in
    its environment and in the file `secret` of `hidden`, and is not told here. `proxy` is the port of the
    way out, 0 when there is none.
    """

    outside: str
    hidden: str
    own: str
    home: str
    neighbour: int
    neighbour_since: int
    actor: int
    actor_since: int
    tcp: int
    tcp6: int
    udp: int
    elsewhere: int
    abstract: str
    proxy: int
    mark: str

    def victim(self, name: str) -> str:
        """The file outside that one try is to change; it says `kept`."""
        return f"{self.outside}/{name}"


class UntriedError(Exception):
    """This host has nothing that the try could be made on."""


class RefusedError(Exception):
    """The try came to nothing, without an error of the system that says so."""


Body = Callable[[Scene], "str | None"]


class Try(NamedTuple):
    """One try: its name, what it does, the gap of a sandbox that lets it through, and whether starts try it too.

    With `by_mark` it may well be done inside, and only what is seen outside, or the token, says that it got through.
    """

    name: str
    what: str
    gap: str
    quick: bool
    by_mark: bool
    body: Body


TRIES: dict[str, Try] = {}
"""Every try by its name, in the order that they are made."""


def attempt(gap: str = "", *, quick: bool = False, by_mark: bool = False) -> Callable[[Body], Body]:
    """Make a function a try; what it does is its docstring, and what it returns is what it could read.

    It raises OSError or `RefusedError` when it was refused, and `UntriedError` when it could not be made.
    """

    def register(body: Body) -> Body:
        name = body.__name__.replace("_", "-")
        TRIES[name] = Try(name, (body.__doc__ or "").strip().rstrip("."), gap, quick, by_mark, body)
        return body

    return register


def seen(process: int, since: int) -> int:
    """The number of a process outside, when it is that process which has this number here.

    Raises:
        RefusedError: it is not seen here.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        stat = b""
    if stat.rpartition(b")")[2].split()[19:20] != [str(since).encode()]:
        raise RefusedError("that process is not seen here")
    return process


def call(name: str, *arguments: object) -> int:
    """Make a system call by its name.

    Raises:
        OSError: it was refused.
        UntriedError: its number is not known on this machine.
    """
    numbers = _NUMBERS_LATER | {"x86_64": _NUMBERS_X86, "aarch64": _NUMBERS_ARM}.get(os.uname().machine, {})
    if name not in numbers:
        raise UntriedError(f"no number of {name} is known here")
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(libc.syscall(ctypes.c_long(numbers[name]), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
