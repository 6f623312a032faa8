"""Run one program and leave nothing of it behind; `process.Child` starts this file as a script.

    python -I -S supervise.py CONTROL STATUS CONFINEMENT PROGRAM [ARGUMENT...]

It is a child subreaper, so every descendant stays below it, also one that forked twice or opened a
session of its own. When the program ends, when `CONTROL` reaches end of file (the actor asked, or
died by kill -9) or when it is told to terminate, it kills all of them and only then writes to
`STATUS` how the program ended: `exit N` (negative for a signal), `errno N` when it could not be
started, or `left N` when N descendants could not be killed. When the program stops it (SIGSTOP), the
death of the actor wakes it. Standard library only: start-up counts.

`CONFINEMENT` is `domain.command.Confinement` in a word: `RULES,FILTER,UID,GID,READS_ALL,WIRE,DOORS`, numbers
of which -1 is none, and doors as `ADDRESS:PORT` joined by `+`. The forked process takes it on, so that the
program starts confined or not at all: what it cannot take on is the errno of a failed start.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP = 22
_PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 28, 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_SECCOMP_MODE_FILTER = 2
_SYS_LANDLOCK_RESTRICT_SELF = 446  # the same on every machine
_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH = 2
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_BACKLOG = 128
_KILL_PATIENCE_S = 10.0


def descendants(root: int, dead: bool = False) -> list[int]:
    """Every living descendant of a process, by the parents that /proc states; `dead`: and those nobody collects."""
    below: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib would double the start-up
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - the same
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if dead or state not in {b"Z", b"X"}:
                below.setdefault(int(parent), []).append(int(name))
    found, queue = [], list(below.get(root, []))
    while queue:
        found.append(queue.pop())
        queue.extend(below.get(found[-1], []))
    return found


def _reap(program: int) -> tuple[bool, int | None]:
    """Collect every child that has ended: (whether any child is left, the program's code or None)."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, code
        if pid == 0:
            return True, code
        if pid == program:
            code = os.waitstatus_to_exitcode(status)


def _start(confinement: str, argv: list[str]) -> tuple[int, int]:
    """Start the program in a session of its own: (its pid, 0 or the errno of a failed start)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _take_on(confinement)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
        except OSError as error:
            os.write(writing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with os.fdopen(reading, "rb") as failure:
        return pid, int(failure.read() or 0)


def _take_on(confinement: str) -> None:
    """Confine this process and all that it will start; raises OSError when a part of that is refused."""
    *numbers, doors = confinement.split(",")
    rules, filtered, uid, gid, reads_all, wire = map(int, numbers)
    for descriptor in (rules, filtered, wire):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    if wire >= 0:
        _open_doors(wire, doors)
    if uid >= 0:
        _become(uid, gid, bool(reads_all))
    # So that not even killing this supervisor frees the program; a change of user undoes it.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if max(rules, filtered) >= 0:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if rules >= 0:
        _check(_LIBC.syscall(_SYS_LANDLOCK_RESTRICT_SELF, rules, 0))
    if filtered >= 0:
        _filter_calls(os.pread(filtered, 65_536, 0))


def _become(uid: int, gid: int, reads_all: bool) -> None:
    """Be this user, without a capability, or with the one to read whatever nobody else forbids."""
    if uid != os.getuid():
        for pipe in (1, 2):
            os.fchown(pipe, uid, gid)  # or `/dev/stderr`, which opens it once more, would be refused
        if reads_all:
            # Kept over the change of user, and not left out when a program asks by access(2).
            _prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _keep_capabilities(reads_all << _CAP_DAC_READ_SEARCH)
    if reads_all:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH)


def _keep_capabilities(kept: int) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)(kept, kept, kept, 0, 0, 0)))


def _filter_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(Program(len(program) // 8, program)))


def _open_doors(wire: int, doors: str) -> None:
    """Have a network of nothing but loopback, and send sockets that listen in it over `wire`."""
    import _socket  # noqa: PLC0415 - `socket` would add a fifth to the start-up, and few programs need it
    import array  # noqa: PLC0415 - the same
    import fcntl  # noqa: PLC0415 - the same

    _own_network()
    loopback = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(
        loopback.fileno(), _SIOCSIFFLAGS, b"lo".ljust(16, b"\0") + _IFF_UP.to_bytes(2, sys.byteorder) + bytes(22)
    )
    listening = []
    for door in doors.split("+"):
        address, _, port = door.partition(":")
        listening.append(_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM))
        listening[-1].bind((address, int(port)))
        listening[-1].listen(_BACKLOG)
    outlet = _socket.socket(fileno=os.dup(wire))
    sent = array.array("i", [one.fileno() for one in listening])
    outlet.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, sent)])
    for one in (outlet, loopback, *listening):
        one.close()


def _own_network() -> None:
    """Leave the host's network; a plain user may do that in a user namespace of its own only."""
    uid, gid = os.getuid(), os.getgid()
    if _LIBC.unshare(_CLONE_NEWNET) == 0:
        return
    _check(_LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET))
    for name, said in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib would double the start-up
            file.write(said)


def _prctl(option: int, *arguments: object) -> None:
    _check(_LIBC.prctl(option, *arguments, *([0] * (4 - len(arguments)))))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "refused")


def _let_go_of_output() -> None:
    """Give up this process's own copies of the pipes, so that the reader sees their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _wait(program: int, control: int, wake: int) -> int | None:
    """Wait for the program's end or the order to end it: its code, or None when it still runs."""
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wake in ready and signal.SIGTERM in os.read(wake, 4096):
            return None
        _, code = _reap(program)
        if code is not None or control in ready:
            return code


def _end_all(program: int, code: int | None) -> str:
    """Kill every descendant: the line that says how the program ended."""
    give_up = time.monotonic() + _KILL_PATIENCE_S
    while time.monotonic() < give_up:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        some_left, ended = _reap(program)
        code = ended if ended is not None else code
        if not some_left:
            return f"exit {code if code is not None else -signal.SIGKILL}"
        time.sleep(0.001)
    return f"left {len(descendants(os.getpid()))}"


def main(argv: list[str]) -> None:
    """Supervise the program of `argv[4:]`, confined as `argv[3]` says; see the module's first lines."""
    control, status = int(argv[1]), int(argv[2])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    program, failure = _start(argv[3], argv[4:])
    _let_go_of_output()
    line = _end_all(program, None if failure else _wait(program, control, wake))
    os.write(status, f"errno {failure}".encode() if failure else line.encode())


if __name__ == "__main__":
    main(sys.argv)
