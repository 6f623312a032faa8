"""System call filters: what namespaces, Landlock and users do not hold is refused by its number here.

A filter is a classic BPF program over `struct seccomp_data`, as `seccomp(2)` describes it: 64-bit
instructions, jumps forward only. One that is refused gets EPERM, as for a right that the caller has not
got; where a program is known to go another way on ENOSYS, it gets that.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from foundry_implementation_actor.sandbox.calls import CALLS, Machine
from foundry_implementation_actor.sandbox.port import Network

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NUMBER, _ARCH = 0, 4
_MOST_JUMP = 255

_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000 | 0x80  # every CLONE_NEW…, the one of time too
_FAST_OPEN = 0x20000000
_OTHERS_RIGHTS = 0o6000  # set-user-ID and set-group-ID
_CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_TYPE = 0xF
_LOCAL, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _TCP = 1, 6
_CONNECT_FAST = 30  # TCP_FASTOPEN_CONNECT
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# Never needed by work inside a tree; each has let somebody out of a sandbox, or into the host.
_REFUSED = (
    "add_key", "keyctl", "request_key", "bpf", "perf_event_open", "userfaultfd", "open_by_handle_at", "setns",
    "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "chroot", "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module",
    "finit_module", "delete_module", "acct", "settimeofday", "clock_settime", "quotactl", "syslog", "fanotify_init",
    "iopl", "ioperm", "lookup_dcookie", "vhangup", "nfsservctl",
)  # fmt: skip
# What a filter cannot look into is absent too: programs go another way then.
_ABSENT = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register")


# Where each takes a mode; and those of them that take it only when flags say so, and where these are.
_MODES = (
    ("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1), ("mkdir", 1), ("mkdirat", 2),
    ("mknod", 1), ("mknodat", 2), ("open", 2), ("openat", 3),
)  # fmt: skip
_FLAGS = {"open": 1, "openat": 2}


class _Step(NamedTuple):
    code: int
    value: int
    then: int = 0
    other: int = 0

    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.then, self.other, self.value)


@cache
def machine() -> Machine | None:
    """The numbers of this host's system calls; None for a machine that this package does not know."""
    return CALLS.get(os.uname().machine)


@cache
def filter_for(network: Network, *, own_network: bool, tcp_ruled: bool = True) -> bytes:
    """The filter for a command.

    Args:
        network: what it may reach.
        own_network: whether it has a network namespace of its own. Without one, and with the network not open,
            only TCP is left, which Landlock rules on.
        tcp_ruled: whether it does. Where it does not, a closed network is one without sockets of the internet.

    Raises:
        KeyError: the machine is not known; see `machine`.
    """
    known = CALLS[os.uname().machine]
    closed = network is not Network.OPEN and not own_network
    steps = [_Step(_LOAD, _ARCH), _Step(_JUMP_EQUAL, known.arch, 1, 0), _refuse(errno.EPERM), _Step(_LOAD, _NUMBER)]
    if known.has_x32:
        steps += [_Step(_JUMP_ABOVE, _X32, 0, 1), _refuse(errno.EPERM)]
    for names, number in ((_REFUSED, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        for name in names:
            steps += _on(known.number(name), [_refuse(number)])
    for name in ("clone", "unshare"):
        steps += _on(known.number(name), _if_any(0, _NEW_NAMESPACES, errno.EPERM))
    for name, mode in _MODES:
        steps += _on(known.number(name), _with_rights_of_others(mode, _FLAGS.get(name)))
    steps += _on(known.number("ioctl"), _if_one_of(1, _TERMINAL_INPUT))
    steps += _on(
        known.number("socket"),
        _socket(_internet(tcp_only=closed, none=closed and not tcp_ruled and network is Network.CLOSED)),
    )
    if closed:
        steps += _on(known.number("setsockopt"), [*_argument(1), _Step(_JUMP_EQUAL, _TCP, 0, 3), *_connect_fast()])
        for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            steps += _on(known.number(name), _if_any(flags, _FAST_OPEN, errno.EPERM))
    return b"".join(step.packed() for step in (*steps, _allow()))


def _on(number: int | None, then: Sequence[_Step]) -> list[_Step]:
    """Steps for one system call, which decide it; with the number loaded before, and after when it is another."""
    if number is None:
        return []
    decided = [*then] if then[-1].code == _RETURN else [*then, _allow()]
    assert len(decided) <= _MOST_JUMP
    return [_Step(_JUMP_EQUAL, number, 0, len(decided)), *decided]


def _internet(*, tcp_only: bool, none: bool) -> list[_Step]:
    """Which sockets of the internet there are: all, those of TCP, or none."""
    if none:
        return [_refuse(errno.EPERM)]
    kind = [*_argument(1), _Step(_AND, _TYPE), _Step(_JUMP_EQUAL, _STREAM, 1, 0), _refuse(errno.EPERM)]
    protocol = [*_argument(2), _Step(_JUMP_EQUAL, 0, 2, 0), _Step(_JUMP_EQUAL, _TCP, 1, 0), _refuse(errno.EPERM)]
    return [*kind, *protocol, _allow()] if tcp_only else [_allow()]


def _socket(internet: Sequence[_Step]) -> list[_Step]:
    """Local sockets, routing questions, and the internet's as far as they are left."""
    family = _argument(0)
    netlink = [*_argument(2), _Step(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _allow()]
    past = len(netlink)
    return [
        *family,
        _Step(_JUMP_EQUAL, _LOCAL, 0, 1), _allow(),
        _Step(_JUMP_EQUAL, _NETLINK, 0, past), *netlink,
        _Step(_JUMP_EQUAL, _INET, 2, 0), _Step(_JUMP_EQUAL, _INET6, 1, 0), _refuse(errno.EPERM),
        *internet,
    ]  # fmt: skip


def _connect_fast() -> list[_Step]:
    return [*_argument(2), _Step(_JUMP_EQUAL, _CONNECT_FAST, 0, 1), _refuse(errno.EPERM), _allow()]


def _if_any(argument: int, bits: int, number: int) -> list[_Step]:
    return [*_argument(argument), _Step(_JUMP_SET, bits, 0, 1), _refuse(number), _allow()]


def _with_rights_of_others(mode: int, flags: int | None) -> list[_Step]:
    """Refuse a file that lends its owner's rights: inside, that may be the actor's user."""
    judged = _if_any(mode, _OTHERS_RIGHTS, errno.EPERM)
    if flags is None:
        return judged
    return [*_argument(flags), _Step(_JUMP_SET, _CREATES, 0, len(judged) - 1), *judged]


def _if_one_of(argument: int, values: Sequence[int]) -> list[_Step]:
    tests = [step for value in values for step in (_Step(_JUMP_EQUAL, value, 0, 1), _refuse(errno.EPERM))]
    return [*_argument(argument), *tests, _allow()]


def _argument(number: int) -> list[_Step]:
    """Load the lower half of an argument, which is all that the kernel looks at of these; little-endian."""
    return [_Step(_LOAD, 16 + 8 * number)]


def _refuse(number: int) -> _Step:
    return _Step(_RETURN, _ERRNO | number)


def _allow() -> _Step:
    return _Step(_RETURN, _ALLOW)
