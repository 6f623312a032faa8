"""A view of this host for a builder: its programs and certificates, the commit, and one folder to write in.

Two walls, as a builder mounts whatever a repository's code names, and as writable as that asks for. bubblewrap makes
the view; inside, `unshare` gives the builder users that are nobody's on this host. Only the second keeps the first:
what another user namespace has mounted read-only stays so, whoever mounts it once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from foundry_implementation_actor.system.own_users import AS_THEIR_ROOT

COMMIT = "/commit"
"""Where the commit's files are inside, read-only."""
DESK = "/desk"
"""Where the one folder is that may be written."""
INSIDE = "inside"
"""What of the desk that folder is."""
NEEDED = {"bwrap": "bubblewrap", "newuidmap": "uidmap", "newgidmap": "uidmap", "unshare": "util-linux"}
"""The programs that this takes, and Debian's package of each."""

_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/containers", "/etc/docker/certs.d", "/etc/group", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf", "/etc/ssl",
)  # fmt: skip
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_SCRATCH = ("/run", "/tmp", "/var/cache", "/var/tmp")  # noqa: S108 - inside, where they are private
_NUMBERS = "users"
# As many as a plain user is commonly given, without himself.
_USERS = 65_535
# Far above what a host gives to people, services and containers.
_FIRST_USER = 2_000_000_000


def enclosed(argv: Sequence[str], commit: Path, desk: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The command that runs another in this view, as root of users of its own, and in namespaces of its own.

    Args:
        argv: what to run; it starts in COMMIT, and nothing that it starts outlives it.
        commit: the files at COMMIT.
        desk: a folder that `open_desk` has made ready.
        environment: its own, which names programs and certificates.
    """
    words = ["--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-uts"]
    for place in (*_SCRATCH, "/etc"):
        words += ["--perms", "1777", "--tmpfs", place]
    for place in _shown(environment):
        words += _seen(place)
    for name in ("subuid", "subgid"):
        words += ["--ro-bind", str(desk / _NUMBERS), f"/etc/{name}"]
    # The users inside may mount their own /proc only where they see all of another; theirs then covers it.
    words += ["--bind", "/proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    words += ["--ro-bind", str(commit), COMMIT, "--bind", str(desk / INSIDE), DESK, "--chdir", COMMIT]
    words += ["--remount-ro", "/etc", "--remount-ro", "/"]
    return (*_entered(), "bwrap", *words, "--", *_unshared(), *argv)


def open_desk(desk: Path) -> None:
    """Make an empty folder ready for `enclosed`."""
    (desk / _NUMBERS).write_text(f"root:{_outer()}:{_USERS}\n")
    (desk / INSIDE).mkdir()
    (desk / INSIDE).chmod(0o777)  # its users are nobody's here; who may pass the desk is for the actor to say


def _entered() -> tuple[str, ...]:
    """What makes a plain user root of a namespace that has all the users that /etc/subuid gives to him."""
    return () if os.geteuid() == 0 else AS_THEIR_ROOT


def _unshared() -> Iterator[str]:
    yield from ("unshare", "--user", "--setuid", "0", "--setgid", "0")
    yield from (f"--map-{kind}={_outer()},0,{_USERS}" for kind in ("users", "groups"))
    yield from ("--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--")


def _outer() -> int:
    """The first of the users inside, by its number outside; a plain user's namespace has himself as 0."""
    return _FIRST_USER if os.geteuid() == 0 else 1


def _shown(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (*_PROGRAMS, *_SETTINGS)
    on_path = environment["PATH"].split(":")
    yield from (folder for folder in on_path if folder.strip("/") and not folder.startswith((*_PROGRAMS, ".")))
    yield from (environment[name] for name in _CERTIFICATES if environment.get(name))


def _seen(name: str) -> Iterator[str]:
    """The same link, or the place read-only below folders that all may pass; nothing for what is not there."""
    place = Path(name)
    if place.is_symlink() and name in _PROGRAMS:
        yield from ("--symlink", str(place.readlink()), name)
    elif place.exists():
        for above in reversed(place.parents[:-1]):
            yield from ("--perms", "0755", "--dir", str(above))
        yield from ("--ro-bind", str(place.resolve()), name)
