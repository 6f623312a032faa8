"""Isolation by bubblewrap: the candidate is mounted over its live path in a private mount namespace."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.gate import watch
from foundry_implementation_actor.gate.limits import bounded, limited, missing_program, private
from foundry_implementation_actor.sandbox import places
from foundry_implementation_actor.sandbox.bubblewrap import NAMESPACES, PROGRAM, SCRATCH_BYTES, base, closed_off
from foundry_implementation_actor.sandbox.ground import ground
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.sandbox.port import Network
from foundry_implementation_actor.sandbox.seccomp import filter_for, machine
from foundry_implementation_actor.system.files import ran_out
from foundry_implementation_actor.system.process import Stop, run_contained

HOME = "/tmp/home"  # noqa: S108 - inside of the sandbox, where /tmp is private
TMP_BYTES = SCRATCH_BYTES
"""What a private folder may hold."""

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
        self._bwrap = shutil.which(PROGRAM) or PROGRAM

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        absent = missing_program(command)
        if absent is not None:
            return absent
        if self.stop.is_set():
            return Completed(command.argv, -signal.SIGKILL, b"", b"", Ended.STOPPED, 0.0)
        with self.isolated(command, {} if original else self.files) as isolated:
            return replace(run_contained(isolated, self.stop), argv=command.argv)

    @contextmanager
    def isolated(self, command: Command, files: Mapping[str, bytes]) -> Iterator[Command]:
        """The command that runs another in isolation, to be started while the context is open.

        Args:
            command: what to run.
            files: contents by their paths below the app, seen in the places of what stands there.
        """
        with ExitStack() as held:
            bound = {path: held.enter_context(in_memory(content)) for path, content in files.items()}
            filtered = held.enter_context(in_memory(call_filter(self._app)))
            yield replace(
                bounded(command),
                argv=(
                    self._bwrap, *self._view(command), *self._bindings(bound), "--seccomp", str(filtered),
                    *limited(command.argv),
                ),
                env=private(command.env, HOME),
                pass_fds=(*command.pass_fds, *bound.values(), filtered),
            )  # fmt: skip

    def _view(self, command: Command) -> list[str]:
        view = base()
        private_folders, kept = hidden(self._app), needed(self._app, command)
        for folder in private_folders:
            view += ["--size", str(TMP_BYTES), "--tmpfs", folder]
        for folder in kept:
            view += ["--ro-bind", folder, folder]
        view += [*closed_off(closed(self._app, (*private_folders, *kept))), "--dir", HOME, *NAMESPACES]
        if not self._app.network:
            view.append("--unshare-net")
        return [*view, "--chdir", str(command.cwd)]

    def _bindings(self, bound: Mapping[str, int]) -> list[str]:
        bindings = [word for folder in emptied(self._app, bound) for word in ("--tmpfs", folder)]
        for path, descriptor in bound.items():
            bindings += ["--perms", "0644", "--ro-bind-data", str(descriptor), str(self._app.root / path)]
        return bindings


def self_check() -> str:
    """Why bubblewrap cannot isolate on this host; empty when a real try shows that it does.

    Raises:
        ActorError: UNFIT when it cannot be tried, because the host has no room left of some kind.
    """
    if shutil.which(PROGRAM) is None:
        return "bubblewrap is not installed"
    if machine() is None:
        return "the system calls of this machine are not known"
    try:
        return _tried()
    except (ActorError, OSError) as error:
        # No way to isolate and no room to try are two things: what is judged must not run less held for the second.
        if isinstance(error, OSError) or ran_out(error):
            hint = "nothing was changed; give this host room (open files, processes, memory, TMPDIR) and ask again"
            raise ActorError(Code.UNFIT, f"bubblewrap cannot be tried out: {error}", hint=hint) from error
        return error.message


def _tried() -> str:
    with ground() as root:
        (root / "body").write_bytes(b"live\n")
        app = App(root, "", "", "", ())
        command = Command(
            ("/bin/sh", "-c", f"{_SELF_CHECK}; {_SELF_CHECK_KERNEL}; true"), root, {"PATH": os.defpath}, _SELF_CHECK_S
        )
        completed = Sandbox(app, {"body": b"candidate\n"})(command)
        untouched = (root / "body").read_bytes() == b"live\n" and not (root / "beside").exists()
    if not completed.ok:
        return completed.errors.splitlines()[-1] if completed.errors else f"bubblewrap ended with {completed.code}"
    shown, _, process = completed.text.partition("\n")
    held = untouched and shown == "candidate" and process.strip().isdigit() and int(process) < 100
    return "" if held else "bubblewrap did not hold what it should"


def call_filter(app: App) -> bytes:
    """The system calls that an app's code gets refused."""
    return filter_for(Network.OPEN if app.network else Network.CLOSED, own_network=not app.network)


def hidden(app: App) -> list[str]:
    """The folders of the host that a command sees empty, and may write to. Homes hold keys and tokens.

    A folder that lies in the app is none: that is seen whole.
    """
    # With the network, what is needed to resolve names is too, and lies where sockets of daemons do.
    first = places.TEMPORARY if app.network else (*places.TEMPORARY, places.SOCKETS)
    apart = [place for place in filter(os.path.isdir, _callers(app)) if not Path(place).is_relative_to(app.root)]
    folders = list(dict.fromkeys([*filter(os.path.isdir, first), *_homes(app.root), *apart]))
    return [folder for folder in folders if not _is_below(folder, folders)]


def closed(app: App, seen_to: Iterable[str]) -> list[str]:
    """What is never seen, wherever it lies: secrets of the host, sockets of its daemons.

    Args:
        app: whose root is seen whole.
        seen_to: folders of which it is settled already what is seen.
    """
    settled = [*seen_to, str(app.root)]
    files = filter(os.path.isfile, _callers(app))
    found = dict.fromkeys([*places.secret_places(), *places.daemon_sockets(), *files])
    apart = [place for place in found if place not in settled and not _is_below(place, settled)]
    return [place for place in apart if not any(one.startswith(f"{place}/") for one in settled)]


def needed(app: App, command: Command) -> list[str]:
    """The folders below a hidden one that a command needs all the same; outermost first."""
    below = tuple(f"{place}/" for place in hidden(app))
    wanted = {str(app.root), str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix}
    if app.shown is None:
        wanted |= _of_programs(app, command) | _linked_to(app)
        for value in command.env.values():
            wanted.update(word for word in value.split(os.pathsep) if word.startswith(below))
    else:
        wanted.update(map(str, app.shown))
    wanted |= set(map(os.path.realpath, wanted))
    homes = _homes(app.root)
    kept = sorted(folder for folder in wanted if folder.startswith(below) and Path(folder).exists())
    kept = [folder for folder in kept if not any(Path(home).is_relative_to(folder) for home in homes)]
    # Nothing can be bound over a link; one that is seen already leads to what is bound at its real place.
    return [folder for folder in kept if os.path.realpath(folder) == folder or not _is_below(folder, kept)]


def _callers(app: App) -> list[str]:
    """The places of the gate's caller, named through no link."""
    return [os.path.realpath(place) for place in app.hidden]


def _is_below(folder: str, others: Iterable[str]) -> bool:
    return any(folder.startswith(f"{other}/") for other in others)


def _homes(root: Path) -> list[str]:
    """Users' homes; an app's root is none."""
    return [home for home in places.homes() if Path(home) != root]


def _of_programs(app: App, command: Command) -> set[str]:
    """Where the programs of a command and of its app are installed."""
    named = (command.argv[0], *app.interpreter[:1], *app.runner[:1], *app.analyser[:1])
    return places.programs(named, command.env.get("PATH", os.defpath), _homes(app.root))


def _linked_to(app: App) -> set[str]:
    """Where links and editable installations of the app lead."""
    links = [place for pattern in ("*", "vendor/*/*") for place in app.root.glob(pattern) if place.is_symlink()]
    interpreter = next(filter(os.path.isabs, app.interpreter[:1]), "")
    return {*map(os.path.realpath, links), *(watch.linked(interpreter) if interpreter else ())}


def emptied(app: App, paths: Iterable[str]) -> list[str]:
    """The folders of compiled code beside these files: that of the original may pass for the candidate's."""
    compiled = {app.root / os.path.dirname(path) / "__pycache__" for path in paths}  # noqa: PTH120 - stays a text
    return sorted(str(folder) for folder in compiled if folder.is_dir() and not folder.is_symlink())
