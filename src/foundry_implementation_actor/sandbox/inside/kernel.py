"""Tries to change what the kernel keeps for the whole host, or to get out of what holds."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
from pathlib import Path

from foundry_implementation_actor.sandbox.inside.calling import call
from foundry_implementation_actor.sandbox.inside.first import open_to_append
from foundry_implementation_actor.sandbox.inside.trying import RefusedError, Scene, UntriedError, attempt

_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000


def _in_a_child(work: object) -> None:
    """Do something that would change this process in a child instead."""
    assert callable(work)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writing, b"0")
        except OSError as error:
            os.write(writing, str(error.errno or 1).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        number = int(said.read() or b"1")
    os.waitpid(child, 0)
    if number:
        raise OSError(number, os.strerror(number))


@attempt()
def mount_files(scene: Scene) -> None:
    """Mount a file system in memory."""
    call("mount", b"none", scene.own.encode(), b"tmpfs", 0, None)
    call("umount2", scene.own.encode(), 2)


@attempt()
def mount_bind(scene: Scene) -> None:
    """Mount a folder of one's own over another."""
    call("mount", scene.own.encode(), scene.outside.encode(), None, _MS_BIND, None)
    call("umount2", scene.outside.encode(), 2)


@attempt()
def mount_writable(scene: Scene) -> None:
    """Mount the root once more, writable, and write."""
    call("mount", None, b"/", None, _MS_REMOUNT | _MS_BIND, None)
    Path(scene.victim("mount-writable")).write_bytes(b"changed")


@attempt()
def mount_private(scene: Scene) -> None:
    """Change how mounts spread."""
    _allowed_on_no_mount("mount", None, scene.own.encode(), None, _MS_REC | _MS_PRIVATE, None)


@attempt()
def unmount(scene: Scene) -> None:
    """Unmount what covers a folder."""
    _allowed_on_no_mount("umount2", scene.own.encode(), 2)


def _allowed_on_no_mount(name: str, *arguments: object) -> None:
    """Try on a folder that no mount is on, which harms nobody: EINVAL says that it was allowed."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


@attempt()
def tree_of_mounts(_: Scene) -> None:
    """Take a copy of a mount by the newer calls."""
    os.close(call("open_tree", -100, b"/", 1))


@attempt()
def mount_attributes(_: Scene) -> None:
    """Take read-only off a mount by the newer calls."""
    call("mount_setattr", -100, b"/", 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)


@attempt()
def new_file_system(_: Scene) -> None:
    """Begin to mount a file system by the newer calls."""
    os.close(call("fsopen", b"tmpfs", 0))


@attempt()
def change_root(scene: Scene) -> None:
    """Change the root, as an escape from a smaller one begins."""
    _in_a_child(lambda: os.chroot(scene.own))


@attempt()
def pivot(scene: Scene) -> None:
    """Exchange the root for another."""
    call("pivot_root", scene.own.encode(), scene.own.encode())


@attempt()
def user_namespace(_: Scene) -> None:
    """Have every capability in a user namespace of one's own, and mount there."""
    _in_a_child(lambda: call("unshare", _NEW_USER | _NEW_MOUNTS))


@attempt()
def join_namespace(scene: Scene) -> None:
    """Join the mounts of another process."""

    def join() -> None:
        namespace = os.open(f"/proc/{scene.neighbour}/ns/mnt", os.O_RDONLY)
        call("setns", namespace, 0)

    _in_a_child(join)


@attempt()
def join_first_namespace(_: Scene) -> None:
    """Join the mounts of process 1."""
    _in_a_child(lambda: call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))


@attempt()
def kernel_setting(_: Scene) -> None:
    """Set how memory is given out on the host."""
    open_to_append("/proc/sys/vm/overcommit_memory")


@attempt()
def system_request(_: Scene) -> None:
    """Restart the host by its emergency key."""
    open_to_append("/proc/sysrq-trigger")


@attempt()
def binary_formats(_: Scene) -> None:
    """Have the kernel start a program for a kind of file."""
    open_to_append("/proc/sys/fs/binfmt_misc/register")


@attempt()
def device_events(_: Scene) -> None:
    """Make the kernel tell of a device that has not changed."""
    open_to_append("/sys/class/mem/null/uevent")


@attempt()
def control_group(scene: Scene) -> None:
    """Make a control group of the host."""
    root = Path("/sys/fs/cgroup")
    groups = [one for one in (root, *sorted(root.glob("*"))) if (one / "cgroup.procs").exists()]
    if not groups:
        raise UntriedError("no control groups are mounted here")
    problems: list[OSError] = []
    for group in groups:
        made = group / f"try-{scene.mark}"
        try:
            made.mkdir()
        except OSError as error:
            problems.append(error)
        else:
            made.rmdir()
            return
    raise problems[0]


@attempt()
def leave_control_group(_: Scene) -> None:
    """Move to another control group of the host."""
    found = sorted(Path("/sys/fs/cgroup").glob("*/cgroup.procs")) or [Path("/sys/fs/cgroup/cgroup.procs")]
    for group in found:
        open_to_append(str(group))


@attempt()
def be_spared(_: Scene) -> None:
    """Be killed last when memory runs out."""
    adjust = Path("/proc/self/oom_score_adj")
    adjust.write_text("-500")


@attempt()
def kernel_log(_: Scene) -> None:
    """Write to the kernel's log."""
    open_to_append("/dev/kmsg")


@attempt()
def read_kernel_log(_: Scene) -> str:
    """Read the kernel's log."""
    buffer = ctypes.create_string_buffer(4096)
    return f"{call('syslog', 3, buffer, 4096)} bytes"


@attempt()
def physical_memory(_: Scene) -> None:
    """Open the memory of the host."""
    if not Path("/dev/mem").exists():
        raise RefusedError("it is not there")
    os.close(os.open("/dev/mem", os.O_RDWR))


@attempt()
def key_ring(scene: Scene) -> None:
    """Leave something in the key ring of the user, which crosses namespaces."""
    call("keyctl", 3, call("add_key", b"user", f"try-{scene.mark}".encode(), b"x", 1, -4))


@attempt()
def read_key_ring(_: Scene) -> None:
    """Look into the key ring of the user."""
    call("keyctl", 11, -4, None, 0, 0)


@attempt()
def kernel_program(_: Scene) -> None:
    """Load a program into the kernel."""
    call("bpf", 0, (ctypes.c_uint32 * 16)(2, 4, 4, 1), 64)


@attempt()
def performance_events(_: Scene) -> None:
    """Measure with the counters of the processor."""
    os.close(call("perf_event_open", (ctypes.c_uint32 * 30)(1, 120), 0, -1, -1, 0))


@attempt()
def page_faults(_: Scene) -> None:
    """Stop the kernel in the midst of a copy."""
    os.close(call("userfaultfd", 1))


@attempt()
def queued_calls(_: Scene) -> None:
    """Make system calls past a filter, by a queue."""
    os.close(call("io_uring_setup", 1, (ctypes.c_uint32 * 40)()))


@attempt()
def type_for_another(_: Scene) -> None:
    """Type into a terminal as if its user did."""
    near, far = os.openpty()
    try:
        fcntl.ioctl(far, 0x5412, b"x")
    finally:
        os.close(near)
        os.close(far)


@attempt("ipc", by_mark=True)
def shared_segment(scene: Scene) -> None:
    """Make System V memory that others find by its key."""
    call("shmget", int(scene.mark, 16) & 0x7FFFFFFF, 4096, 0o1600)


@attempt("shared-memory", by_mark=True)
def shared_memory(scene: Scene) -> None:
    """Leave a file in the host's shared memory."""
    Path(f"/dev/shm/try-{scene.mark}").write_bytes(b"x")  # noqa: S108 - the place itself is tried


@attempt(by_mark=True)
def daemon(scene: Scene) -> None:
    """Leave a process behind, in a session of its own, that ignores every signal."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            held = os.open(f"{scene.own}/daemon", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            signal.pause()
        os._exit(0)
    os.wait()
