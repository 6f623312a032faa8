"""A process that has its modules loaded and forks for each program that it is asked to run.

    python fork_server.py SOCKET MODULE,MODULE SOCKET MODULE,MODULE

One process answers each socket, with those modules loaded, and ends when the socket does. A request is one
JSON object (`argv`, `cwd`, `env`, `folder`, `covered`, `private`, `kept`, `size`, `emptied`, `files`, `limits`)
with descriptors: stdin, stdout, stderr, control, status, and one for the content of each file. The program gets
namespaces of its own for its mounts, processes, network and the rest, no capability, and ends when control does;
then status brings `exit N`, as `supervise.py` has it, or `errno N` when it could not be started.

It runs in bubblewrap, in a user namespace of its own in which it may mount. Code of the app is never
loaded before a program has given that up. Standard library only, Python 3.9 and later, Linux.
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH110, PTH112, PTH120, PTH123 - loads less
from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import types
from typing import Any

_MESSAGE = 1024 * 1024
_DESCRIPTORS = 250
_CHUNK = 1024 * 1024

_NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # mounts, UTS, IPC, processes, network
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    """A system call filter, as `prctl` takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main() -> None:
    """Serve; returns only in a process that is to be a program, and runs it."""
    here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != here]
    first, second = (socket.socket(fileno=int(number)) for number in sys.argv[1:4:2])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        mine, other, modules = second, first, sys.argv[4]
    else:
        mine, other, modules = first, second, sys.argv[2]
    other.close()
    _load(modules.split(","))
    _run(_serve(mine))


def _load(modules: list[str]) -> None:
    for name in modules:
        # A program that needs what is not there says so itself.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _serve(asking: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns in a process that is to be the program of one."""
    said = {"path": sys.path, "modules": sorted({name.partition(".")[0] for name in sys.modules})}
    gc.collect()
    gc.freeze()
    asking.sendall(json.dumps(said).encode())
    while True:
        asked, descriptors = _receive(asking)
        if asked["argv"][0] != "-m":
            _compiled(asked["argv"][0])
        if os.fork() == 0:
            asking.close()
            _watch(asked, descriptors)
            return asked
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(asking: socket.socket) -> tuple[dict[str, Any], list[int]]:
    sent = array.array("i")
    message, ancillary, _, _ = asking.recvmsg(_MESSAGE, socket.CMSG_SPACE(_DESCRIPTORS * sent.itemsize))
    if not message:
        os._exit(0)
    for _, _, content in ancillary:
        sent.frombytes(content[: len(content) - len(content) % sent.itemsize])
    return json.loads(message), list(sent)


def _watch(asked: dict[str, Any], descriptors: list[int]) -> None:
    """Start the program below an init of its own, wait for its end or the order to end it; returns in the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control, status = descriptors[3:5]
    if _libc.unshare(_NEW) != 0:
        os.write(status, b"errno %d" % ctypes.get_errno())
        os._exit(0)
    init = os.fork()
    if init == 0:
        _be_init(asked, descriptors)
        return
    ended = os.pidfd_open(init)
    for descriptor in (*descriptors[:3], *descriptors[5:]):
        os.close(descriptor)
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    if ended not in {descriptor for descriptor, _ in poll.poll()}:
        os.kill(init, signal.SIGKILL)
    # An init is dead when everything in its namespace is.
    code = os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
    os.write(status, b"exit %d" % code)
    os._exit(0)


def _be_init(asked: dict[str, Any], descriptors: list[int]) -> None:
    """Make the program's view, and collect whoever ends in it until the program does; returns in the program."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        _see(asked, descriptors[5:])
        _raise_loopback()
    except OSError as error:
        os.write(descriptors[4], b"errno %d" % (error.errno or 1))
        os._exit(1)
    program = os.fork()
    if program == 0:
        _become(asked, descriptors)
        return
    os.closerange(0, max(descriptors) + 1)
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _become(asked: dict[str, Any], descriptors: list[int]) -> None:
    """Take on what the program is started with: session, streams, limits, environment; give up every capability."""
    os.setsid()
    for at in range(3):
        os.dup2(descriptors[at], at)
    os.closerange(3, 1024)
    os.chdir(asked["cwd"])
    for limit, most in asked["limits"]:
        number = getattr(resource, limit)
        resource.setrlimit(number, (most, most))
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    program = bytes.fromhex(asked["filter"])
    steps = _Filter(len(program) // 8, program)
    if (
        _libc.capset(header, bytes(24)) != 0
        or _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        or _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(steps), 0, 0) != 0
    ):
        os._exit(126)
    os.environ.clear()
    os.environ.update(asked["env"])


def _see(asked: dict[str, Any], contents: list[int]) -> None:
    """Mount what is the program's own, and its files at their places."""
    _mount("", "/", flags=_REC | _PRIVATE)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    for place in asked["covered"]:
        _bind(place, place, _NOSUID | _NODEV | _NOEXEC)
    kept = [(folder, os.open(folder, os.O_PATH)) for folder in asked["kept"]]
    for folder in asked["private"]:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"size={asked['size']},mode=0755")
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"size={asked['size']},mode=0755")  # noqa: S108
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("", "/dev", flags=_REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    for place, descriptor in kept:
        os.makedirs(place if os.path.isdir(f"/proc/self/fd/{descriptor}") else os.path.dirname(place), exist_ok=True)
        if not os.path.exists(place):
            os.close(os.open(place, os.O_CREAT))
        _mount(f"/proc/self/fd/{descriptor}", place, flags=_BIND | _REC)
        os.close(descriptor)
    for place in asked["closed"]:
        if os.path.isdir(place):
            _mount("tmpfs", place, "tmpfs", _RDONLY | _NOSUID | _NODEV, "mode=0755")
        else:
            _bind(os.devnull, place, _NOSUID | _NODEV | _NOEXEC)
    os.makedirs(asked["folder"])
    for folder in asked["emptied"]:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, "mode=0755")
    for place, descriptor in zip(asked["files"], contents):  # noqa: B905 - Python 3.9 has no strict
        _put(place, descriptor, f"{asked['folder']}/body")


def _put(place: str, descriptor: int, beside: str) -> None:
    """Mount the content of a descriptor over a file."""
    with open(beside, "wb") as file:
        os.sendfile(file.fileno(), descriptor, 0, os.fstat(descriptor).st_size)
    os.chmod(beside, 0o644)
    _bind(beside, place, _NOSUID | _NODEV)
    os.unlink(beside)


def _bind(source: str, place: str, flags: int) -> None:
    """Mount something at a second place, read-only."""
    _mount(source, place, flags=_BIND)
    _mount("", place, flags=_REMOUNT | _BIND | _RDONLY | flags)


def _mount(source: str, place: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    words = [os.fsencode(word) or None for word in (source, place, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {place}")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _run(asked: dict[str, Any]) -> None:
    """Run the program as the interpreter would: `-m MODULE` or a script, in a `__main__` of its own."""
    how, *words = asked["argv"]
    added = [] if sys.flags.ignore_environment else asked["env"].get("PYTHONPATH", "").split(os.pathsep)
    # Isolated interpreters put nothing in front.
    first = [] if sys.flags.isolated or getattr(sys.flags, "safe_path", False) else [_first(how, asked["cwd"])]
    sys.path[:] = dict.fromkeys([*first, *map(os.path.abspath, filter(None, added)), *sys.path])
    sys.argv[:] = words if how == "-m" else [how, *words]
    sys.modules["__main__"] = types.ModuleType("__main__")
    if how == "-m":
        runpy._run_module_as_main(words[0])  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` itself calls
    else:
        names = vars(sys.modules["__main__"])
        names["__file__"] = how
        exec(_compiled(how), names)  # noqa: S102 - a script of the gate


@functools.cache
def _compiled(script: str) -> types.CodeType:
    with open(script, "rb") as file:
        return compile(file.read(), script, "exec")


def _first(how: str, cwd: str) -> str:
    return cwd if how == "-m" else os.path.dirname(how)


if __name__ == "__main__":
    main()
