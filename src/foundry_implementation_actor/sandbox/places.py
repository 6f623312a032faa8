"""Which places of the host a command sees: the ones that are nobody's business, and what it needs of them."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from foundry_implementation_actor.domain.command import Command

PLAIN = "nobody"
"""The user that other people's code runs as, inside, where the actor is root."""

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - places to hide, not to use
SOCKETS = "/run"
"""Sockets of the host's daemons; what is needed to resolve names may lie there too."""

_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "mtrr", "acpi", "scsi", "pressure")
_KERNEL = tuple(f"/proc/{name}" for name in _SETTINGS)
# Where root alone may read, and how deep that is looked for.
_SEARCHED = (
    ("/", 1), ("/etc", 6), ("/usr/local/etc", 3), ("/var", 3), ("/boot", 1), ("/opt", 2), ("/srv", 2), ("/mnt", 1),
)  # fmt: skip
_FIRST_USER = 1000  # of people, by the default of useradd
_LAST_USER = 60_000
_INSTALLED = ("lib", "lib64", "libexec", "share", "include", "versions", "version", "node_modules", "pyvenv.cfg")


def is_there(path: str) -> bool:
    """Whether a path leads to something, as far as this user may see; pathlib raises where its way is closed."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def is_folder(path: str) -> bool:
    """Whether a path leads to a folder, in the same way."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def plain_user() -> tuple[int, int]:
    """The uid and gid of `nobody`, as this host has it or as nearly every host does."""
    try:
        known = pwd.getpwnam(PLAIN)
    except KeyError:
        return 65_534, 65_534
    return known.pw_uid, known.pw_gid


def homes() -> list[str]:
    """Every user's home that is there, this user's as the host and as the environment have it too."""
    said = {"/root", "/home", os.path.expanduser("~")}  # noqa: PTH111 - stays a text
    said |= {one.pw_dir for one in pwd.getpwall() if _is_a_persons(one.pw_uid)}
    real = {os.path.realpath(home) for home in said if os.path.isabs(home)}  # noqa: PTH117 - the same
    return sorted(home for home in real if home != "/" and is_folder(home))


def _is_a_persons(uid: int) -> bool:
    return uid in {0, os.getuid()} or _FIRST_USER <= uid < _LAST_USER


def kernel_settings() -> list[str]:
    """What root may write to in /proc even without a capability: settings of the kernel, and so of the host."""
    return [place for place in _KERNEL if Path(place).exists()] if os.getuid() == 0 else []


@cache
def secret_places() -> tuple[str, ...]:
    """What this user may read as its owner and a plain user may not, where hosts keep keys and passwords.

    Empty for a plain user, whom the host itself keeps out. Looked for once in a process.
    """
    if os.getuid() != 0:
        return ()
    return tuple(sorted({place for top, depth in _SEARCHED for place in _closed(top, depth)}))


def _closed(folder: str, depth: int) -> Iterator[str]:
    """The files and folders below that others may not read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            found = entry.stat(follow_symlinks=False)
            mode = found.st_mode
            if stat.S_ISDIR(mode):
                if mode & 0o005 != 0o005:
                    yield entry.path
                elif depth > 1:
                    yield from _closed(entry.path, depth - 1)
            elif stat.S_ISREG(mode) and not mode & 0o004 and found.st_size:  # an empty one is a lock
                yield entry.path


def daemon_sockets() -> list[str]:
    """The sockets in the file system on which somebody on this host listens now."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]:
            words = line.split(maxsplit=7)
            if len(words) == 8 and words[7].startswith("/"):
                found.add(words[7])
    return sorted(filter(_is_socket, found))


def _is_socket(place: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(place).st_mode)  # noqa: PTH116 - a text, for each socket of the host
    except OSError:  # gone, or in a folder that is closed to this user and so to what it runs
        return False


def resolver() -> set[str]:
    """Where the host says how names are resolved, when that is a link."""
    named = os.path.realpath("/etc/resolv.conf")
    return set() if named == "/etc/resolv.conf" else {os.path.dirname(named)}  # noqa: PTH120 - stays a text


def programs(named: Iterable[str], path: str, kept: Iterable[str]) -> set[str]:
    """Where these programs are installed: `bin` and what lies beside it.

    Args:
        named: programs, as commands name them.
        path: the PATH that they are looked for on.
        kept: homes, of which no more is to be named than the folder that the program lies in.
    """
    found, homes_kept = set(), [Path(home) for home in kept]
    for program in named:
        first = Path(shutil.which(program, path=path) or program)
        for place in {first, Path(os.path.realpath(first))}:
            if place.is_absolute() and is_there(str(place)):
                prefix = place.parents[min(1, len(place.parents) - 1)]
                apart = not _is_shared(prefix, homes_kept) and len(place.parts) > 3
                found.add(str(prefix if apart else place.parent))
    return found


def on_path(path: str, kept: Iterable[str]) -> set[str]:
    """The folders of a PATH, and of what lies beside one only what installations are made of."""
    found, homes_kept = set(), [Path(home) for home in kept]
    for folder in map(Path, path.split(os.pathsep)):
        found.add(str(folder))
        if not _is_shared(folder.parent, homes_kept):
            found |= {str(folder.parent / name) for name in _INSTALLED}
    return found


def _is_shared(prefix: Path, homes_kept: Iterable[Path]) -> bool:
    """Whether more lies in a folder than what one program was installed with."""
    return any(home / ".local" == prefix or home.is_relative_to(prefix) for home in homes_kept)


def of_command(command: Command, kept: Iterable[str], hidden: Iterable[str]) -> set[str]:
    """What a command needs to be started, wherever its programs are installed.

    Args:
        command: what is to be started.
        kept: homes, as in `programs`.
        hidden: the folders that nothing is seen of otherwise; what its PATH names elsewhere is left out.
    """
    path, kept = command.env.get("PATH", os.defpath), tuple(kept)
    below = tuple(f"{folder}/" for folder in hidden)
    folders = [one for one in path.split(os.pathsep) if os.path.isabs(one)]  # noqa: PTH117 - texts, on each start
    concealed = [one for one in folders if one.startswith(below) or os.path.realpath(one).startswith(below)]
    wanted = programs(command.argv[:1], path, kept)
    wanted |= on_path(os.pathsep.join(concealed), kept) if concealed else set()
    return wanted | set(map(os.path.realpath, wanted))
