"""System calls by their names, for tries that Python has no other way to."""

from __future__ import annotations

import ctypes
import os

from foundry_implementation_actor.sandbox.inside.trying import UntriedError

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
