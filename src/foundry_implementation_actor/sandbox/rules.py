"""Landlock rule sets, by system call: what the kernel refuses a process and all that it starts.

The structures and numbers are those of `linux/landlock.h`; which of them a kernel knows, its ABI number says.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from foundry_implementation_actor.sandbox.calls import LATER

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE_VERSION = 1
_RULE_PATH, _RULE_PORT = 1, 2

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER, REMOVE_FOLDER, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DEVICE, MAKE_FOLDER, MAKE_FILE, MAKE_SOCKET, MAKE_PIPE, MAKE_BLOCK, MAKE_LINK = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, DEVICE_CONTROL = (1 << bit for bit in range(13, 16))
READ = EXECUTE | READ_FILE | READ_FOLDER
WRITE = (
    WRITE_FILE | REMOVE_FOLDER | REMOVE_FILE | MAKE_FOLDER | MAKE_FILE | MAKE_SOCKET | MAKE_PIPE | MAKE_LINK
    | REFER | TRUNCATE
)  # fmt: skip
ALL = READ | WRITE | MAKE_DEVICE | MAKE_BLOCK | DEVICE_CONTROL
ON_FILES = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE | DEVICE_CONTROL
"""The rights that a rule on anything but a folder may name."""

BIND, CONNECT = 1, 2
ABSTRACT_SOCKETS, SIGNALS = 1, 2
NEEDED, TCP_FROM, DEVICES_FROM, SCOPES_FROM = 3, 4, 5, 6
"""The ABI without which nothing is held (a file could be cut), and those from which on more is ruled on: TCP
ports; what a device is told; signals and sockets without a name."""


class Handled(NamedTuple):
    """What a rule set refuses unless a rule grants it: rights on files and on ports, and what is scoped."""

    files: int
    ports: int
    scoped: int


@cache
def abi() -> int:
    """The version of Landlock on this host; 0 when there is none."""
    return max(0, _call("landlock_create_ruleset", None, 0, _CREATE_VERSION))


def handled(version: int) -> Handled:
    """All that a kernel whose Landlock has this ABI rules on."""
    files = ALL if version >= DEVICES_FROM else ALL & ~DEVICE_CONTROL
    ports = BIND | CONNECT if version >= TCP_FROM else 0
    return Handled(files, ports, ABSTRACT_SOCKETS | SIGNALS if version >= SCOPES_FROM else 0)


def create(refused: Handled) -> int:
    """A new rule set that refuses these rights wherever no rule grants them: its descriptor.

    Raises:
        OSError: the kernel refuses it.
    """
    # An older kernel takes the longer structure as long as what it does not know of is zero.
    attributes = struct.pack("=QQQ", *refused)
    return _checked(_call("landlock_create_ruleset", attributes, len(attributes), 0))


def allow_below(rules: int, path: str, rights: int) -> None:
    """Grant rights on a file, or on a folder and all below it. One that is gone meanwhile is left out."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allow_open(rules, place, rights)
    finally:
        os.close(place)


def allow_open(rules: int, place: int, rights: int) -> None:
    """Grant rights on what a descriptor leads to.

    Raises:
        OSError: the kernel refuses it.
    """
    _checked(_call("landlock_add_rule", rules, _RULE_PATH, struct.pack("=Qi", rights, place), 0))


def allow_port(rules: int, port: int, rights: int) -> None:
    """Grant rights on a TCP port, of whatever host.

    Raises:
        OSError: the kernel refuses it.
    """
    _checked(_call("landlock_add_rule", rules, _RULE_PORT, struct.pack("=QQ", rights, port), 0))


def scope() -> int:
    """A rule set that only keeps from sockets without a name that others made, -1 where the kernel has none."""
    return create(Handled(0, 0, ABSTRACT_SOCKETS)) if abi() >= SCOPES_FROM else -1


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """The descriptor, closed afterwards."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _call(name: str, *arguments: object) -> int:
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(_LIBC.syscall(ctypes.c_long(LATER[name]), *words))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
