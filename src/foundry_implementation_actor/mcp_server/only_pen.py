"""The gate as the only pen of one session of the actor, outside of what holds that session."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.gate.account import Account
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.isolate import Halt
from foundry_implementation_actor.gate.state import kept_in
from foundry_implementation_actor.gate.warm import Warm
from foundry_implementation_actor.mcp_server.over_http import OverHttp
from foundry_implementation_actor.mcp_server.server import gate_server
from foundry_implementation_actor.sandbox.places import homes, on_path
from foundry_implementation_actor.system.journal import Journal


@dataclass(frozen=True)
class PenRule:
    """What holds for every session of an actor.

    `root` is the app's directory in the repository, with `/` at its end; empty for the repository itself.
    `barred` says why a path of the repository may not be written, empty when it may. `path` is the PATH of what is
    judged, whatever its app says. `network` is whether judged code may use the network when its app asks for it.
    `hidden` are the actor's own places, of which that code sees the tree alone.
    """

    root: str
    barred: Callable[[str], str]
    path: str
    network: bool
    version: str
    hidden: tuple[Path, ...]


class OnlyPen:
    """A `session.pen.Pen`: a context manager around each session of a run, left after that session has ended.

    The house is read once, before the first of them: what a session might write to `gate.yaml` changes nothing.

    Args:
        rule: see there.
        tree: the session's tree.
        folder: a new folder for the gate's state is made here; on the tree's file system, out of the session's
            reach.
        journal: told of each attempt.

    Raises:
        ActorError: BAD_REQUEST when there is no house below the root, or its `gate.yaml` has faults.
    """

    def __init__(self, rule: PenRule, tree: Path, folder: Path, journal: Journal) -> None:
        house = _house(rule, tree)
        self.token = secrets.token_hex(32)
        self._state = folder / "gate"
        self._journal = journal
        self._account = Account(rule.root, self._tell)
        self._gate = Gate(
            house,
            tools=lambda app: _kept_apart(app, rule, tree),
            redact=journal.redact,
            witness=self._account,
            barred=lambda path: rule.barred(rule.root + path),
        )
        self._version = rule.version
        self._opened = ExitStack()
        self._serve: Callable[[socket.socket], None]
        self._staged: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        # What an earlier session began in sections may be finished by this one.
        self._state.mkdir(exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(kept_in(self._gate.root, self._state))
            opened.callback(self._note_staged)
            self._serve = opened.enter_context(_answering(self._gate, self._version, self.token))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._opened.close()

    def serve(self, listener: socket.socket) -> None:
        """Answer the session on a listening socket."""
        self._serve(listener)

    def record(self) -> GateRecord:
        """What the gate wrote."""
        return self._account.record(self._staged)

    def _note_staged(self) -> None:
        self._staged = tuple(str(staged.target) for staged in self._gate.status())
        if self._staged:
            self._journal.event("gate-unfinished", level="warn", classes=list(self._staged))

    def _tell(self, name: str, known: Mapping[str, Any]) -> None:
        self._journal.event(name, level="warn" if name == "gate-refused" else "info", **known)


@contextmanager
def _answering(gate: Gate, version: str, token: str) -> Iterator[Callable[[socket.socket], None]]:
    """What answers one session on a listening socket; when the context is left, every call has ended."""
    halt = Halt()
    warm = Warm(halt)
    of_session = replace(gate, isolated=warm.isolated, given_up=halt.is_set)
    http = OverHttp(gate_server(lambda: of_session, version), token)
    try:
        yield http.serve
    finally:
        halt.set()
        # A call that waits for a server which is kept ready has its answer then, and can end.
        warm.close()
        http.close()


def _kept_apart(app: App, rule: PenRule, tree: Path) -> App:
    """The app as an actor judges it: what a repository says of itself shows its code no place of the host's."""
    shown = (tree.resolve(), *map(Path, on_path(rule.path, homes())))
    environment = {**app.environment, "PATH": rule.path}
    network = app.network and rule.network
    return replace(app, network=network, environment=environment, hidden=rule.hidden, shown=shown)


def _house(rule: PenRule, tree: Path) -> House:
    place = Path(tree, rule.root)
    named = rule.root or "./"
    if not place.is_dir():
        hint = "commit an app there: the gate makes plugins and classes, and no app"
        raise ActorError(Code.BAD_REQUEST, "the gate's root is not in the repository", hint=hint, where=named)
    if place.resolve() != Path(tree.resolve(), rule.root):
        raise ActorError(Code.BAD_REQUEST, "the gate's root is a link", hint="name the directory itself", where=named)
    try:
        return House.open(place, upward=False, search_path=rule.path)
    except ActorError as error:
        # Where this run's tree lies means nothing to whoever reads this.
        said, where = (text.replace(f"{tree.resolve()}/", "") for text in (error.message, error.where))
        where = named if where == str(place.resolve()).removeprefix(f"{tree.resolve()}/") else where
        raise ActorError(Code.BAD_REQUEST, said, hint=error.hint, where=where or named) from error
