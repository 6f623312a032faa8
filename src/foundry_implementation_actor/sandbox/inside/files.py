"""Tries to change a file outside by every route that leads to one. Each has a file of its own name there."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foundry_implementation_actor.sandbox.inside.calling import call
from foundry_implementation_actor.sandbox.inside.first import own, write
from foundry_implementation_actor.sandbox.inside.trying import RefusedError, Scene, UntriedError, attempt

_AT_FDCWD = -100


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@attempt()
def append(scene: Scene) -> None:
    """Append to a file."""
    write(scene.victim("append"), os.O_WRONLY | os.O_APPEND)


@attempt()
def truncate(scene: Scene) -> None:
    """Cut a file by its path."""
    os.truncate(scene.victim("truncate"), 0)


@attempt()
def truncate_by_open(scene: Scene) -> None:
    """Cut a file by opening it to read."""
    with _opened(scene.victim("truncate-by-open"), os.O_RDONLY | os.O_TRUNC):
        pass


@attempt()
def ftruncate_of_a_read(scene: Scene) -> None:
    """Cut a file by a descriptor that reads."""
    with _opened(scene.victim("ftruncate-of-a-read"), os.O_RDONLY) as file:
        os.ftruncate(file, 0)


@attempt()
def allocate(scene: Scene) -> None:
    """Make a file larger by a descriptor that reads."""
    with _opened(scene.victim("allocate"), os.O_RDONLY) as file:
        os.posix_fallocate(file, 0, 4096)


@attempt()
def rename_in(scene: Scene) -> None:
    """Move a file of one's own out of its place."""
    Path(own(scene, "rename-in")).rename(scene.victim("rename-in.new"))


@attempt()
def rename_out(scene: Scene) -> None:
    """Move a file from outside to one's own place."""
    Path(scene.victim("rename-out")).rename(f"{scene.own}/rename-out")


@attempt()
def rename_beside(scene: Scene) -> None:
    """Move a file outside beside itself."""
    Path(scene.victim("rename-beside")).rename(scene.victim("rename-beside.new"))


@attempt()
def hard_link(scene: Scene) -> None:
    """Give a file outside a second name, and write to that."""
    os.link(scene.victim("hard-link"), f"{scene.own}/hard-link")
    write(f"{scene.own}/hard-link")


@attempt()
def hard_link_in(scene: Scene) -> None:
    """Give a file of one's own a second name outside."""
    os.link(own(scene, "hard-link-in"), scene.victim("hard-link-in.new"))


@attempt()
def link_folder(scene: Scene) -> None:
    """Make a file in a folder that a link of one's own leads to."""
    Path(f"{scene.own}/link-folder").symlink_to(scene.outside)
    write(f"{scene.own}/link-folder/link-folder.new", os.O_WRONLY | os.O_CREAT)


@attempt()
def dots(scene: Scene) -> None:
    """Write by a path that climbs out of one's own place."""
    write(f"{scene.own}/../outside/dots")


@attempt()
def symbolic_link(scene: Scene) -> None:
    """Make a symbolic link outside."""
    Path(scene.victim("symbolic-link.new")).symlink_to("/")


@attempt()
def map_shared(scene: Scene) -> None:
    """Map a file shared and write to the memory."""
    with _opened(scene.victim("map-shared"), os.O_RDWR) as file, mmap.mmap(file, 4, mmap.MAP_SHARED) as memory:
        memory[0:4] = b"lost"


@attempt()
def map_then_protect(scene: Scene) -> None:
    """Map a file shared to read, and make the memory writable."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    with _opened(scene.victim("map-then-protect"), os.O_RDONLY) as file:
        place = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        if libc.mprotect(ctypes.c_void_p(place), 4096, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        ctypes.memmove(place, b"lost", 4)


@attempt()
def reopen_by_descriptor(scene: Scene) -> None:
    """Open a descriptor that reads once more, to write, by /proc/self/fd."""
    with _opened(scene.victim("reopen-by-descriptor"), os.O_RDONLY) as file:
        write(f"/proc/self/fd/{file}")


@attempt()
def reopen_by_path_only(scene: Scene) -> None:
    """Open a descriptor that only names a file, to write, by /proc/self/fd."""
    with _opened(scene.victim("reopen-by-path-only"), os.O_PATH) as file:
        write(f"/proc/self/fd/{file}")


@attempt()
def by_own_root(scene: Scene) -> None:
    """Write by /proc/self/root."""
    write(f"/proc/self/root{scene.victim('by-own-root')}")


@attempt()
def by_root_of_the_first(scene: Scene) -> None:
    """Write by the root of process 1."""
    write(f"/proc/1/root{scene.victim('by-root-of-the-first')}")


@attempt()
def by_root_of_a_neighbour(scene: Scene) -> None:
    """Write by the root of another process of this user."""
    write(f"/proc/{scene.neighbour}/root{scene.victim('by-root-of-a-neighbour')}")


@attempt()
def by_folder_of_a_neighbour(scene: Scene) -> None:
    """Write by the working directory of another process of this user."""
    write(f"/proc/{scene.neighbour}/cwd/outside/by-folder-of-a-neighbour")


@attempt()
def by_folder_descriptor(scene: Scene) -> None:
    """Make a file by a descriptor of a folder outside."""
    with _opened(scene.outside, os.O_RDONLY | os.O_DIRECTORY) as folder:
        os.close(os.open("by-folder-descriptor.new", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder))


@attempt()
def nameless_file(scene: Scene) -> None:
    """Make a file without a name outside, and name it."""
    with _opened(scene.outside, os.O_TMPFILE | os.O_RDWR) as file:
        # Only with a folder to start from does it follow the link that this path is.
        os.link(f"/proc/self/fd/{file}", scene.victim("nameless-file.new"), src_dir_fd=file, follow_symlinks=True)


@attempt()
def file_handle(scene: Scene) -> None:
    """Open a file to write by its handle, past every mount."""
    handle = (ctypes.c_uint * 34)(128)
    mount = ctypes.c_int()
    call("name_to_handle_at", _AT_FDCWD, scene.victim("file-handle").encode(), handle, ctypes.byref(mount), 0)
    with _opened(scene.outside, os.O_RDONLY) as folder:
        file = call("open_by_handle_at", folder, handle, os.O_WRONLY)
        os.write(file, b"changed")


@attempt()
def remove(scene: Scene) -> None:
    """Remove a file."""
    Path(scene.victim("remove")).unlink()


@attempt()
def make_folder(scene: Scene) -> None:
    """Make a folder."""
    Path(scene.victim("make-folder.new")).mkdir()


@attempt()
def make_pipe(scene: Scene) -> None:
    """Make a named pipe."""
    os.mkfifo(scene.victim("make-pipe.new"))


@attempt()
def make_socket(scene: Scene) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(scene.victim("make-socket.new"))


@attempt()
def make_device(scene: Scene) -> None:
    """Make a device of a disk in one's own place."""
    os.mknod(f"{scene.own}/make-device", 0o600 | stat.S_IFBLK, os.makedev(254, 0))


@attempt()
def copy_range(scene: Scene) -> None:
    """Copy bytes into a file by descriptors alone."""
    with (
        _opened(own(scene, "copy-range"), os.O_RDONLY) as source,
        _opened(scene.victim("copy-range"), os.O_RDONLY) as target,
    ):
        os.copy_file_range(source, target, 4, 0, 0)


@attempt()
def device_of_a_disk(_: Scene) -> str:
    """Read a disk past its files."""
    disks = [f"/dev/{name}" for name in os.listdir("/sys/block")] if Path("/sys/block").is_dir() else []  # noqa: PTH208
    if not disks:
        raise UntriedError("no disk is seen here")
    for disk in disks:
        with contextlib.suppress(OSError), _opened(disk, os.O_RDONLY) as raw:
            return f"{len(os.read(raw, 16))} bytes of {disk}"
    raise RefusedError("no disk can be opened")
