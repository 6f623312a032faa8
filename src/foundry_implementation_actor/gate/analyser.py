"""ty's language server, kept up: asked about texts that are not on disk, told of what changed there."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.gate import watch
from foundry_implementation_actor.gate.bubblewrap import Sandbox
from foundry_implementation_actor.languages import python_ty_server as words
from foundry_implementation_actor.system.process import Child

_CREATED, _CHANGED, _DELETED = 1, 2, 3
_EDITED = 1
# A shell can give a program one socket for both streams only when its number has one digit.
_START = (
    "import os, sys; far = int(sys.argv[1]); null = os.open(os.devnull, os.O_WRONLY);"
    "os.dup2(far, 0); os.dup2(far, 1); os.dup2(null, 2); os.execv(sys.argv[2], sys.argv[2:])"
)
_LARGEST = 64 * 1024 * 1024


class Analyser:
    """One server for one set of options, up until it is closed or dies; one question at a time.

    Raises:
        ActorError: UNFIT when it does not start here.
    """

    def __init__(self, app: App, command: Command, check: words.Check) -> None:
        self._root = app.root
        self._key = _key(app, command, check)
        self._lock = Lock()
        self._python = check.options["--python"][-1] if "--python" in check.options else ""
        self._folders = _folders(app, check, watch.linked(self._python) if self._python else [])
        self._stamps, self._installed = watch.look(self._folders), self._of_environment()
        near, far = socket.socketpair()
        with ExitStack() as ends:
            ends.enter_context(near)
            try:
                with Sandbox(app, {}).isolated(_command(app, command, check, far.fileno()), {}) as isolated:
                    self._child = Child(isolated)
            finally:
                far.close()
            ends.callback(self._child.end)
            self._talk = _Talk(near, command.timeout_s)
            ends.callback(self._talk.close)
            self._talk.ask("initialize", words.hello(app.root, check.settings, os.getpid()))
            self._talk.tell("initialized", {})
            self._ends = ends.pop_all()

    def close(self) -> None:
        """End it."""
        self._ends.close()

    def fits(self, app: App, command: Command, check: words.Check) -> bool:
        """Whether it was started with these options, and what it takes for granted is still so."""
        return _key(app, command, check) == self._key and self._of_environment() == self._installed

    def run(self, command: Command, check: words.Check, files: Mapping[str, bytes]) -> Completed:
        """What the check says with these files (by their paths below the app) in their places.

        Raises:
            ActorError: UNFIT when the server gives no answer, or can give none that is sure.
        """
        started = time.monotonic()
        texts = {**{path: (self._root / path).read_bytes() for path in check.paths if path not in files}, **files}
        if not all(map(words.is_plain, texts.values())):
            raise ActorError(Code.UNFIT, "a text is not plain UTF-8")
        with self._lock:
            self._tell_changes()
            for path, text in texts.items():
                document = {"uri": self._uri(path), "languageId": "python", "version": _EDITED, "text": text.decode()}
                self._talk.tell("textDocument/didOpen", {"textDocument": document})
            found = [(path, item) for path in check.paths for item in self._findings(path)]
            for path in texts:
                self._talk.tell("textDocument/didClose", {"textDocument": {"uri": self._uri(path)}})
        return words.completed(command, found, time.monotonic() - started)

    def _findings(self, path: str) -> list[Mapping[str, Any]]:
        answer = self._talk.ask("textDocument/diagnostic", {"textDocument": {"uri": self._uri(path)}})
        if not isinstance(answer, dict) or "items" not in answer:
            raise ActorError(Code.UNFIT, f"ty's server did not judge {path}")
        items: list[Mapping[str, Any]] = answer["items"]
        return items

    def _tell_changes(self) -> None:
        now = watch.look(self._folders)
        changes = watch.between(self._stamps, now)
        if changes.unlike:
            raise ActorError(Code.UNFIT, "a file changed that does not look so to ty's server")
        self._stamps = now
        kinds = ((_CREATED, changes.created), (_CHANGED, changes.changed), (_DELETED, changes.deleted))
        told = [{"uri": Path(path).as_uri(), "type": kind} for kind, paths in kinds for path in paths]
        if told:
            self._talk.tell("workspace/didChangeWatchedFiles", {"changes": told})

    def _uri(self, path: str) -> str:
        return (self._root / path).as_uri()

    def _of_environment(self) -> watch.Stamps:
        return watch.installed(self._python) if self._python else {}


class _Talk:
    """The language server protocol, from the client's side; whatever the server asks gets an empty answer."""

    def __init__(self, near: socket.socket, timeout_s: float) -> None:
        near.settimeout(timeout_s)
        self._socket = near
        self._reader = near.makefile("rb")
        self._asked = 0

    def close(self) -> None:
        self._reader.close()

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while True:
            said = self._receive()
            if "method" in said and "id" in said:
                self._send({"id": said["id"], "result": None})
            elif said.get("id") == self._asked:
                return said.get("result")

    def _send(self, message: Mapping[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self._socket.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        except OSError as error:
            raise ActorError(Code.UNFIT, f"ty's server is gone: {error}") from error

    def _receive(self) -> dict[str, Any]:
        try:
            size = 0
            while line := self._reader.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    size = min(int(value), _LARGEST)
            said: dict[str, Any] = json.loads(self._reader.read(size))
        except (OSError, ValueError) as error:
            raise ActorError(Code.UNFIT, f"ty's server gave no answer: {error}") from error
        return said


def _command(app: App, command: Command, check: words.Check, far: int) -> Command:
    """The server, with a socket for both its streams; it runs in the isolation of any judge."""
    start = (sys.executable, "-I", "-S", "-c", _START, str(far), check.program, "server")
    return Command(start, app.root, command.env, command.timeout_s, pass_fds=(far,))


def _key(app: App, command: Command, check: words.Check) -> tuple[object, ...]:
    root = app.root.stat()
    options = tuple(sorted(check.options.items()))
    project = tuple(sorted(watch.stamps([str(app.root / "pyproject.toml"), check.program]).items()))
    return (check.program, options, tuple(sorted(command.env.items())), root.st_dev, root.st_ino, project)


def _folders(app: App, check: words.Check, more: list[str]) -> list[str]:
    """Where the modules are that a body may import, apart from what is installed; none below another."""
    found = sorted({str(app.root), *check.options.get("--extra-search-path", ()), *more})
    return [one for one in found if not any(one.startswith(f"{other}/") for other in found)]
