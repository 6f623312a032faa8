"""The warm gate: the same commands and the same answers, from processes that are kept ready.

A `Run` is all that the judges know of how a command comes to its end, so that this is one more `Run`: it
recognises the commands that a fork or ty's server can answer, and runs every other one cold. Where a server
cannot be had, dies, or can give no answer that is sure, the command runs cold too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.gate import isolate
from foundry_implementation_actor.gate.analyser import Analyser
from foundry_implementation_actor.gate.bubblewrap import Sandbox
from foundry_implementation_actor.gate.forks import Forks, is_for_fork
from foundry_implementation_actor.gate.limits import missing_program
from foundry_implementation_actor.languages import python
from foundry_implementation_actor.languages.python_ty_server import check_of

Files = Mapping[str, bytes]
_Served = Callable[[App, Command, Sandbox, Files], Completed | None]
# A host that refused a server that often is not asked again.
_MOST_FAILURES = 3


class Warm:
    """What is kept ready for one app. A context manager: leaving it ends all of it.

    `isolated` stands in for `isolate.isolated`. It may be used by several threads at once. `halt` ends it from
    elsewhere.
    """

    def __init__(self, halt: isolate.Halt | None = None) -> None:
        self._halt = halt
        self._forks = _Kept[Forks]()
        self._analyser = _Kept[Analyser]()

    @contextlib.contextmanager
    def isolated(self, app: App, candidates: Sequence[Candidate]) -> Iterator[Run]:
        """A `Run` as `isolate.isolated` gives it, warm where it can be."""
        with isolate.isolated(app, candidates, self._halt) as cold:
            if isinstance(cold, Sandbox) and app.language == python.NAME and not app.network:
                is_test = any(candidate.place.is_test for candidate in candidates)
                yield _WarmRun(app, cold, self._forked, None if is_test else self._analysed)
            else:
                yield cold

    def close(self) -> None:
        """End everything that is kept; commands run cold from then on."""
        self._forks.close()
        self._analyser.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _forked(self, app: App, command: Command, cold: Sandbox, files: Files) -> Completed | None:
        def ask(forks: Forks) -> Completed | None:
            return forks.run(command, files, cold.stop) if forks.runs(command) else None

        if not is_for_fork(app, command):
            return None
        return self._forks.ask(ask, lambda forks: forks.fits(app), lambda: Forks(app))

    def _analysed(self, app: App, command: Command, _: Sandbox, files: Files) -> Completed | None:
        check = check_of(command)
        if check is None or app.analyser:
            return None
        return self._analyser.ask(
            lambda one: one.run(command, check, files),
            lambda one: one.fits(app, command, check),
            lambda: Analyser(app, command, check),
        )


class _WarmRun:
    """A `Run` that asks what is kept first, and the cold one where that has no answer."""

    note = ""

    def __init__(self, app: App, cold: Sandbox, *served: _Served | None) -> None:
        self._app = app
        self._cold = cold
        self._served = [one for one in served if one is not None]

    def __call__(self, command: Command, *, original: bool = False) -> Completed:
        files = {} if original else self._cold.files
        if missing_program(command) is None and not self._cold.stop.is_set():
            for served in self._served:
                completed = served(self._app, command, self._cold, files)
                if completed is not None:
                    return completed
        return self._cold(command, original=original)


class _Ends(Protocol):
    """What can be kept until it is closed."""

    def close(self) -> None: ...


_Server = TypeVar("_Server", bound=_Ends)


class _Kept(Generic[_Server]):
    """One server of a kind, started when it is first asked, and again when it failed or fits no more.

    A server that is closed while it is asked in another thread fails there, and that command runs cold.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._server: _Server | None = None
        self._starts_left = _MOST_FAILURES

    def ask(
        self,
        what: Callable[[_Server], Completed | None],
        fits: Callable[[_Server], bool],
        start: Callable[[], _Server],
    ) -> Completed | None:
        """What the server says; None when it has no answer to this, failed, or could not be started."""
        server = self._ready(fits, start)
        if server is None:
            return None
        try:
            return what(server)
        except (ActorError, OSError, ValueError):
            self._drop(server)
            return None

    def close(self) -> None:
        """End the server; there will be no other."""
        with self._lock:
            self._starts_left = 0
            self._end()

    def _ready(self, fits: Callable[[_Server], bool], start: Callable[[], _Server]) -> _Server | None:
        with self._lock:
            if self._server is not None and not fits(self._server):
                self._end()
            if self._server is None and self._starts_left > 0:
                try:
                    self._server = start()
                    self._starts_left = _MOST_FAILURES
                except (ActorError, OSError):
                    self._starts_left -= 1
            return self._server

    def _drop(self, server: _Server) -> None:
        with self._lock:
            if self._server is server:
                self._end()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
