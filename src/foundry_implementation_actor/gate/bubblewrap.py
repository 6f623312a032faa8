"""Isolation by bubblewrap: the candidate is mounted over its live path in a private mount namespace."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.gate import watch
from foundry_implementation_actor.gate.limits import bounded, limited, missing_program, private
from foundry_implementation_actor.system.process import Stop, run_contained

HOME = "/tmp/home"  # noqa: S108 - inside of the sandbox, where /tmp is private
TMP_BYTES = 256 * 1024 * 1024
"""What a private folder may hold."""

# Sockets of the host's daemons lie in /run; what is needed to resolve names does too.
_HIDDEN = ("/tmp", "/var/tmp")  # noqa: S108
_HIDDEN_WITHOUT_NETWORK = (*_HIDDEN, "/run")
_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "mtrr", "acpi", "scsi", "pressure")
_KERNEL = tuple(f"/proc/{name}" for name in _SETTINGS)
_SELF_CHECK_S = 10.0
_SELF_CHECK = 'cat body; (echo wrote >body) 2>/dev/null; (echo wrote >beside) 2>/dev/null; echo "$$"'
# Opened only, and never written to, in case that it can be.
_SELF_CHECK_KERNEL = "(: >>/proc/sys/kernel/core_pattern) 2>/dev/null && echo kernel"


class Sandbox:
    """A `Run`: every command gets namespaces of its own, and nothing of it outlives them.

    Once `stop` is set, a command that runs is ended and no other is started.
    """

    note = ""

    def __init__(self, app: App, files: Mapping[str, bytes], stop: Stop | None = None) -> None:
        self._app = app
        self.files = files
        self.stop = stop or Stop()
        self._bwrap = shutil.which("bwrap") or "bwrap"

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        absent = missing_program(command)
        if absent is not None:
            return absent
        if self.stop.is_set():
            return Completed(command.argv, -signal.SIGKILL, b"", b"", Ended.STOPPED, 0.0)
        files = {} if original else self.files
        with ExitStack() as open_files:
            bound = {path: open_files.enter_context(readable(content)) for path, content in files.items()}
            return replace(run_contained(self.isolated(command, bound), self.stop), argv=command.argv)

    def isolated(self, command: Command, bound: Mapping[str, int] | None = None) -> Command:
        """The command that runs another in isolation; `bound` are descriptors of contents by their paths."""
        bound = bound or {}
        return replace(
            bounded(command),
            argv=(self._bwrap, *self._view(command), *self._bindings(bound), *limited(command.argv)),
            env=private(command.env, HOME),
            pass_fds=(*command.pass_fds, *bound.values()),
        )

    def _view(self, command: Command) -> list[str]:
        view = ["--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev"]
        view += ["--size", str(TMP_BYTES), "--tmpfs", "/dev/shm", "--proc", "/proc"]  # noqa: S108
        for place in covered():
            view += ["--ro-bind", place, place]
        for folder in hidden(self._app):
            view += ["--size", str(TMP_BYTES), "--tmpfs", folder]
        for folder in needed(self._app, command):
            view += ["--ro-bind", folder, folder]
        view += ["--dir", HOME, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
        if not self._app.network:
            view.append("--unshare-net")
        return [*view, "--die-with-parent", "--new-session", "--chdir", str(command.cwd)]

    def _bindings(self, bound: Mapping[str, int]) -> list[str]:
        bindings = [word for folder in emptied(self._app, bound) for word in ("--tmpfs", folder)]
        for path, descriptor in bound.items():
            bindings += ["--perms", "0644", "--ro-bind-data", str(descriptor), str(self._app.root / path)]
        return bindings


def self_check() -> str:
    """Why bubblewrap cannot isolate on this host; empty when a real try shows that it does."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "body").write_bytes(b"live\n")
        app = App(root, "", "", "", ())
        command = Command(
            ("/bin/sh", "-c", f"{_SELF_CHECK}; {_SELF_CHECK_KERNEL}; true"), root, {"PATH": os.defpath}, _SELF_CHECK_S
        )
        try:
            completed = Sandbox(app, {"body": b"candidate\n"})(command)
        except ActorError as error:
            return error.message
        untouched = (root / "body").read_bytes() == b"live\n" and not (root / "beside").exists()
    if not completed.ok:
        return completed.errors.splitlines()[-1] if completed.errors else f"bubblewrap ended with {completed.code}"
    shown, _, process = completed.text.partition("\n")
    held = untouched and shown == "candidate" and process.strip().isdigit() and int(process) < 100
    return "" if held else "bubblewrap did not hold what it should"


@contextlib.contextmanager
def readable(content: bytes) -> Iterator[int]:
    """A descriptor that reads as `content` from its beginning."""
    descriptor = os.memfd_create("body")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def covered() -> list[str]:
    """What root may write to in /proc even without a capability: settings of the kernel, and so of the host."""
    return [place for place in _KERNEL if Path(place).exists()] if os.getuid() == 0 else []


def hidden(app: App) -> list[str]:
    """The folders of the host that a command sees empty, and may write to. HOME holds keys and tokens."""
    folders = list(filter(os.path.isdir, _HIDDEN if app.network else _HIDDEN_WITHOUT_NETWORK))
    below = tuple(f"{folder}/" for folder in folders)
    return [*folders, *(home for home in _homes(app.root) if not home.startswith(below))]


def needed(app: App, command: Command) -> list[str]:
    """The folders below a hidden one that a command needs all the same; outermost first."""
    below = tuple(f"{place}/" for place in hidden(app))
    wanted = {str(app.root), str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix}
    wanted |= _of_programs(app, command) | _linked_to(app)
    for value in command.env.values():
        wanted.update(word for word in value.split(os.pathsep) if word.startswith(below))
    wanted |= set(map(os.path.realpath, wanted))
    homes = _homes(app.root)
    kept = sorted(folder for folder in wanted if folder.startswith(below) and Path(folder).exists())
    kept = [folder for folder in kept if not any(Path(home).is_relative_to(folder) for home in homes)]
    # Nothing can be bound over a link; one that is seen already leads to what is bound at its real place.
    return [folder for folder in kept if os.path.realpath(folder) == folder or not _is_below(folder, kept)]


def _is_below(folder: str, others: Iterable[str]) -> bool:
    return any(folder.startswith(f"{other}/") for other in others)


def _homes(root: Path) -> list[str]:
    """This user's HOME, as the host and as the environment have it; an app's root or a folder above is none."""
    with contextlib.suppress(KeyError):  # a user whom the host does not know
        said = {pwd.getpwuid(os.getuid()).pw_dir, os.path.expanduser("~")}  # noqa: PTH111 - stays a text
        real = {os.path.realpath(home) for home in said if os.path.isabs(home)}  # noqa: PTH117 - the same
        return sorted(home for home in real if os.path.isdir(home) and Path(home) not in {root, Path("/")})  # noqa: PTH112
    return []


def _of_programs(app: App, command: Command) -> set[str]:
    """Where the programs are installed: `bin` and what lies beside it."""
    found = set()
    for program in (command.argv[0], *app.interpreter[:1], *app.runner[:1], *app.analyser[:1]):
        named = Path(shutil.which(program, path=command.env.get("PATH", os.defpath)) or program)
        for place in {named, Path(os.path.realpath(named))}:
            if place.is_absolute() and place.exists():
                prefix = place.parents[min(1, len(place.parents) - 1)]
                shared = any(
                    Path(home) / ".local" == prefix or Path(home).is_relative_to(prefix) for home in _homes(app.root)
                )
                found.add(str(place.parent if shared or len(place.parts) <= 3 else prefix))
    return found


def _linked_to(app: App) -> set[str]:
    """Where links and editable installations of the app lead."""
    links = [place for pattern in ("*", "vendor/*/*") for place in app.root.glob(pattern) if place.is_symlink()]
    interpreter = next(filter(os.path.isabs, app.interpreter[:1]), "")
    return {*map(os.path.realpath, links), *(watch.linked(interpreter) if interpreter else ())}


def emptied(app: App, paths: Iterable[str]) -> list[str]:
    """The folders of compiled code beside these files: that of the original may pass for the candidate's."""
    compiled = {app.root / os.path.dirname(path) / "__pycache__" for path in paths}  # noqa: PTH120 - stays a text
    return sorted(str(folder) for folder in compiled if folder.is_dir() and not folder.is_symlink())
