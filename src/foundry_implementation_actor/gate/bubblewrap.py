"""Isolation by bubblewrap: the candidate is mounted over its live path in a private mount namespace."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.gate.limits import limited, missing_program, private
from foundry_implementation_actor.system.process import run_contained

_HOME = "/tmp/home"  # noqa: S108 - inside of the sandbox, where /tmp is private
_TMP_BYTES = 256 * 1024 * 1024
# Sockets of the host's daemons lie in /run; what is needed to resolve names does too.
_HIDDEN = ("/tmp", "/var/tmp")  # noqa: S108
_HIDDEN_WITHOUT_NETWORK = (*_HIDDEN, "/run")
_SELF_CHECK_S = 10.0
_SELF_CHECK = 'cat body; (echo wrote >body) 2>/dev/null; (echo wrote >beside) 2>/dev/null; echo "$$"'


class Sandbox:
    """A `Run`: every command gets namespaces of its own, and nothing of it outlives them."""

    note = ""

    def __init__(self, app: App, files: Mapping[str, bytes]) -> None:
        self._app = app
        self._files = files
        self._bwrap = shutil.which("bwrap") or "bwrap"

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        absent = missing_program(command)
        if absent is not None:
            return absent
        files = {} if original else self._files
        with ExitStack() as open_files:
            bound = {path: open_files.enter_context(_readable(content)) for path, content in files.items()}
            isolated = replace(
                command,
                argv=(self._bwrap, *self._view(command), *self._bindings(bound), *limited(command.argv)),
                env=private(command.env, _HOME),
                pass_fds=(*command.pass_fds, *bound.values()),
            )
            return replace(run_contained(isolated), argv=command.argv)

    def _view(self, command: Command) -> list[str]:
        view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        hidden = _HIDDEN if self._app.network else _HIDDEN_WITHOUT_NETWORK
        for folder in filter(os.path.isdir, hidden):
            view += ["--size", str(_TMP_BYTES), "--tmpfs", folder]
        for folder in _needed(self._app, command):
            if folder.startswith(tuple(f"{place}/" for place in hidden)):
                view += ["--ro-bind", folder, folder]
        view += ["--dir", _HOME, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
        if not self._app.network:
            view.append("--unshare-net")
        return [*view, "--die-with-parent", "--new-session", "--chdir", str(command.cwd)]

    def _bindings(self, bound: Mapping[str, int]) -> list[str]:
        bindings = []
        # Compiled code of the original may pass for the candidate's: same size, same second.
        for folder in sorted({os.path.dirname(path) for path in bound}):  # noqa: PTH120 - stays a text
            compiled = self._app.root / folder / "__pycache__"
            if compiled.is_dir() and not compiled.is_symlink():
                bindings += ["--tmpfs", str(compiled)]
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
        command = Command(("/bin/sh", "-c", _SELF_CHECK), root, {"PATH": os.defpath}, _SELF_CHECK_S)
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
def _readable(content: bytes) -> Iterator[int]:
    """A descriptor that reads as `content` from its beginning."""
    descriptor = os.memfd_create("body")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _needed(app: App, command: Command) -> list[str]:
    """The folders that a command needs although they may lie below one that is hidden; outermost first."""
    needed = {str(app.root), str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix}
    for program in (command.argv[0], *app.interpreter[:1], *app.runner[:1], *app.analyser[:1]):
        for place in (Path(program), Path(program).resolve()):
            if place.is_absolute() and place.exists() and len(place.parts) > 3:
                needed.add(str(place.parents[1]))
    for variable in ("PATH", "PYTHONPATH"):
        needed.update(command.env.get(variable, "").split(os.pathsep))
    return sorted(folder for folder in needed if folder.startswith("/") and Path(folder).exists())
