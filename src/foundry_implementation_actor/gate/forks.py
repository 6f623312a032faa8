"""Running a Python app's commands in processes that are forked, not started: the near end of `fork_server.py`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.gate.bubblewrap import HOME, TMP_BYTES, call_filter, closed, emptied, hidden, needed
from foundry_implementation_actor.gate.limits import FILE_BLOCKS, MEMORY_KIB, bounded, private
from foundry_implementation_actor.gate.watch import stamps
from foundry_implementation_actor.languages.python_place import INSIDE
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.sandbox.places import kernel_settings
from foundry_implementation_actor.system.process import Child, Stop
from foundry_implementation_actor.system.running import Pipes, Running, gather

_SERVER = str(Path(__file__).with_name("inside") / "fork_server.py")
_PROBE_NEEDS = ("importlib.util", "inspect", "pathlib", "traceback")
_PYTEST_NEEDS = ("pytest", "pdb", "tomllib", "_pytest.config", *(f"_pytest.{name}" for name in (
    "_argcomplete", "assertion.rewrite", "capture", "compat", "debugging", "doctest", "faulthandler",
    "fixtures", "helpconfig", "junitxml", "legacypath", "logging", "main", "mark", "monkeypatch", "nodes",
    "pastebin", "pytester_assertions", "python", "recwarn", "reports", "runner", "setuponly", "setupplan",
    "skipping", "stepwise", "subtests", "terminal", "threadexception", "tmpdir", "unittest",
    "unraisableexception", "warnings",
)))  # fmt: skip
_VIEW = (
    "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user", "--unshare-pid",
    "--unshare-ipc", "--unshare-uts", "--unshare-net", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN",
    "--cap-add", "CAP_NET_ADMIN", "--die-with-parent", "--new-session",
)  # fmt: skip
_START_S = 20.0
_MESSAGE = 1024 * 1024
_LIMITS = (("RLIMIT_CORE", 0), ("RLIMIT_AS", MEMORY_KIB * 1024), ("RLIMIT_FSIZE", FILE_BLOCKS * 512))
# Modules of the app that an interpreter runs when it starts, which is before a fork.
_AT_START = frozenset({"sitecustomize", "usercustomize"})


class Forks:
    """The fork server of one app's interpreter, up until it is closed or dies.

    Raises:
        ActorError: UNFIT when it does not start here.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._key = _key(app)
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        with ExitStack() as near:
            for asking, _ in pairs:
                near.callback(asking.close)
            try:
                self._child = Child(_command(app, [far.fileno() for _, far in pairs]))
            finally:
                for _, far in pairs:
                    far.close()
            near.callback(self._child.end)
            self._bare, self._loaded = (_Server(asking) for asking, _ in pairs)
            self._near = near.pop_all()
        self._environment = stamps(self._bare.path)

    def close(self) -> None:
        """End it and everything that it started."""
        self._near.close()

    def fits(self, app: App) -> bool:
        """Whether what it has loaded is still what this app's interpreter would load."""
        return _key(app) == self._key and stamps(self._bare.path) == self._environment

    def runs(self, command: Command) -> bool:
        """Whether a command that `is_for_fork` comes to the same in a fork of this server."""
        words = command.argv[len(self._app.interpreter) :]
        return not self._for(words).hides(command, words)

    def run(self, command: Command, files: Mapping[str, bytes], stop: Stop) -> Completed:
        """What comes of a command with these files (by their paths below the app) in their places.

        Raises:
            ActorError: UNFIT when the server could not run it to its end.
        """
        words, started = command.argv[len(self._app.interpreter) :], time.monotonic()
        private_folders, kept = hidden(self._app), needed(self._app, command)
        asked = {
            "argv": words, "cwd": str(command.cwd), "env": private(command.env, HOME), "folder": HOME,
            "covered": kernel_settings(), "private": private_folders, "kept": kept, "size": TMP_BYTES,
            "closed": closed(self._app, (*private_folders, *kept)),
            "emptied": emptied(self._app, files), "files": [str(self._app.root / path) for path in files],
            "limits": _LIMITS, "filter": call_filter(self._app).hex(),
        }  # fmt: skip
        pipes, far = _pipes()
        try:
            with ExitStack() as contents:
                stdin, *texts = [contents.enter_context(in_memory(text)) for text in (command.stdin, *files.values())]
                self._for(words).send(asked, [stdin, *far, *texts])
        except OSError as error:
            for descriptor in pipes:
                os.close(descriptor)
            raise ActorError(Code.UNFIT, "the process that forks is gone") from error
        finally:
            for descriptor in far:
                os.close(descriptor)
        running = _Forked(pipes, stop)
        running.top = self._child.top
        completed = gather(running, bounded(command), started)
        # What is over a bound may be another fork's: each runs cold then, and is looked at by itself.
        if running.lost or not running.started or completed.ended in {Ended.PROCESSES, Ended.MEMORY}:
            raise ActorError(Code.UNFIT, "the process that forks did not bring this to its end")
        return completed

    def _for(self, words: Sequence[str]) -> _Server:
        return self._loaded if words[0] == "-m" else self._bare


def is_for_fork(app: App, command: Command) -> bool:
    """Whether a command runs pytest or a script of the gate in the app's interpreter."""
    known, words = len(app.interpreter), command.argv[len(app.interpreter) :]
    if command.argv[:known] != app.interpreter or not words or command.pass_fds:
        return False
    return words[:2] == ("-m", "pytest") or (words[0].endswith(".py") and Path(words[0]).parent == INSIDE)


class _Forked(Running):
    """A program in a fork."""

    def __init__(self, pipes: Pipes, stop: Stop) -> None:
        super().__init__(pipes, stop)
        self._output = [pipes.stdout, pipes.stderr]

    def _let_go(self) -> None:
        while self._output:
            os.close(self._output.pop())


class _Server:
    """One process that forks: its socket, and what it has loaded."""

    def __init__(self, asking: socket.socket) -> None:
        self._asking = asking
        asking.settimeout(_START_S)
        try:
            said: dict[str, Any] = json.loads(asking.recv(_MESSAGE))
        except (OSError, ValueError) as error:
            raise ActorError(Code.UNFIT, "no process can be kept ready to fork here") from error
        self.path: list[str] = said["path"]
        self._loaded = frozenset(said["modules"])

    def hides(self, command: Command, words: Sequence[str]) -> bool:
        """Whether the command's own folders hold a module that would have come before one that is loaded already."""
        folders = [folder for folder in command.env.get("PYTHONPATH", "").split(os.pathsep) if folder]
        if words[0] == "-m":
            folders.append(str(command.cwd))
        return any(_holds(Path(folder), self._loaded | _AT_START) for folder in folders)

    def send(self, asked: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Ask for a program; both the descriptors and the words arrive, or neither."""
        socket.send_fds(self._asking, [json.dumps(asked).encode()], list(descriptors))


def _holds(folder: Path, modules: frozenset[str]) -> bool:
    """Whether a folder of the import path holds one of these modules; a folder without `__init__.py` is none."""
    with contextlib.suppress(OSError):
        named = [name for name in os.listdir(folder) if name.partition(".")[0] in modules]  # noqa: PTH208 - names
        return any("." in name or (folder / name / "__init__.py").exists() for name in named)
    return False


def _command(app: App, sockets: Sequence[int]) -> Command:
    """The server in an isolation in which it may mount, but not touch the host."""
    first, second = map(str, sockets)
    server = (*app.interpreter, _SERVER, first, ",".join(_PROBE_NEEDS), second, ",".join(_PYTEST_NEEDS))
    # What is in the app's folders is loaded after a fork only.
    environment = {name: value for name, value in app.environment.items() if name != "PYTHONPATH"}
    environment = {"PATH": os.defpath, **environment, "HOME": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}
    return Command((*_VIEW, *server), Path("/"), environment, _START_S, pass_fds=tuple(sockets))


def _pipes() -> tuple[Pipes, list[int]]:
    """The near ends of a program's pipes, and the far: stdout, stderr, control, status."""
    stdout, theirs = os.pipe()
    stderr, errors = os.pipe()
    ordered, control = os.pipe()
    status, said = os.pipe()
    return Pipes(stdout, stderr, control, status), [theirs, errors, ordered, said]


def _key(app: App) -> tuple[object, ...]:
    """What the server was started with, and the file of its interpreter."""
    program = shutil.which(app.interpreter[0], path=app.environment.get("PATH")) or app.interpreter[0]
    root = app.root.stat()
    found = (root.st_dev, root.st_ino, os.path.realpath(program), *stamps([program]).values())
    return (app.interpreter, app.root, tuple(sorted(app.environment.items())), *found)
