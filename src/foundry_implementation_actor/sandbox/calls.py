"""Numbers of Linux system calls, as the kernel's tables have them; those from 424 on are the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Machine(NamedTuple):
    """One kind of machine: its AUDIT_ARCH, whether it has a second set of calls (x32), and its own numbers."""

    arch: int
    has_x32: bool
    numbers: Mapping[str, int]

    def number(self, name: str) -> int | None:
        """The number of a call; None where this machine has none of that name."""
        return LATER.get(name, self.numbers.get(name))


LATER = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437,
    "fchmodat2": 452, "mount_setattr": 442,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
}  # fmt: skip

_X86_64 = {
    "open": 2, "mkdir": 83, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133, "openat": 257, "mkdirat": 258,
    "mknodat": 259, "fchmodat": 268,
    "add_key": 248, "keyctl": 250, "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "open_by_handle_at": 304, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "swapon": 167, "swapoff": 168, "reboot": 169, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
    "finit_module": 313, "delete_module": 176, "acct": 163, "settimeofday": 164, "clock_settime": 227,
    "quotactl": 179, "syslog": 103, "fanotify_init": 300, "iopl": 172, "ioperm": 173, "lookup_dcookie": 212,
    "vhangup": 153, "nfsservctl": 180, "clone": 56, "unshare": 272, "ioctl": 16, "socket": 41, "setsockopt": 54,
    "sendto": 44, "sendmsg": 46, "sendmmsg": 307,
}  # fmt: skip

_AARCH64 = {
    "mknodat": 33, "mkdirat": 34, "fchmod": 52, "fchmodat": 53, "openat": 56,
    "add_key": 217, "keyctl": 219, "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
    "open_by_handle_at": 265, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
    "swapon": 224, "swapoff": 225, "reboot": 142, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105,
    "finit_module": 273, "delete_module": 106, "acct": 89, "settimeofday": 170, "clock_settime": 112, "quotactl": 60,
    "syslog": 116, "fanotify_init": 262, "lookup_dcookie": 18, "vhangup": 58, "nfsservctl": 42, "clone": 220,
    "unshare": 97, "ioctl": 29, "socket": 198, "setsockopt": 208, "sendto": 206, "sendmsg": 211, "sendmmsg": 269,
}  # fmt: skip

CALLS = {
    "x86_64": Machine(0xC000003E, has_x32=True, numbers=_X86_64),
    "aarch64": Machine(0xC00000B7, has_x32=False, numbers=_AARCH64),
}
"""By the name that `platform.machine` gives."""
