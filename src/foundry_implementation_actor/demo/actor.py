"""The demo's actor: `serve` as a process of its own, its records followed, its doors called as a peer calls them."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from foundry_implementation_actor.actor.settings import PASSED_ON
from foundry_implementation_actor.demo.stage import Stage
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.session.transcript import Lines
from foundry_implementation_actor.system.process import Child, Stream

PEER = "demo-peer"

_LOOPBACK = "127.0.0.1"
_DAY_S = 24 * 3600.0
_SHOWN = 1000
_SCRIPTED = {"SESSION_ENGINE": "scripted", "SESSION_TIMEOUT_S": "60", "ASSESS_TIMEOUT_S": "60"}
_MODEL = (
    "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "BILLING",
    "MAX_TURNS", "SESSION_TIMEOUT_S", "ASSESS_MAX_TURNS", "ASSESS_TIMEOUT_S", *PASSED_ON,
)  # fmt: skip

Record = Mapping[str, Any]


class Reply(NamedTuple):
    """What a door answered: the HTTP status and the JSON object."""

    status: int
    body: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.status} {json.dumps(self.body, ensure_ascii=False)}"


class RunningActor:
    """An actor that serves the stage's instance while it is open as a context manager.

    Args:
        stage: what it serves, and where its state is.
        settings: its whole environment.
        on_record: is shown each of its records as it comes.
    """

    def __init__(self, stage: Stage, settings: Mapping[str, str], on_record: Callable[[Record], None]) -> None:
        argv = (sys.executable, "-P", "-m", "foundry_implementation_actor.cli", "serve", str(stage.instance))
        self._command = Command((*argv, "--port", "0"), cwd=stage.folder, env=settings, timeout_s=_DAY_S)
        self._on_record = on_record
        self._lines, self._errors = Lines(), bytearray()
        self._open = ExitStack()
        self.port = 0

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            # Left in reverse: the actor ends first, and with it a call that still waits for an answer.
            self._calls = opening.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix=PEER))
            self._child = opening.enter_context(Child(self._command))
            self.port = self._until(lambda record: record.get("step") == "actor-started")["port"]
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def call(self, door: str, payload: Mapping[str, Any]) -> Reply:
        """Post a request to a door and wait for its answer, showing the actor's records meanwhile.

        Raises:
            ActorError: BUG when the actor ended instead of answering.
        """
        answer = self._calls.submit(_post, self.port, door, {"from": PEER, "payload": payload})
        self._until(lambda record: record.get("step") == "call")
        return answer.result()

    def _until(self, wanted: Callable[[Record], bool]) -> Record:
        """Show records up to the first that is wanted, and return that one."""
        for record in self._records():
            self._on_record(record)
            if wanted(record):
                return record
        said = self._errors.decode("utf-8", "replace").strip()[-_SHOWN:] or "it said nothing"
        raise ActorError(Code.BUG, f"the demo's actor ended with exit code {self._child.code}: {said}")

    def _records(self) -> Iterator[Record]:
        while True:
            output = self._child.read(_DAY_S)
            if output.stream is Stream.ENDED:
                return
            if output.stream is Stream.STDERR:
                self._errors += output.chunk
            elif output.stream is Stream.STDOUT:
                for line in self._lines.feed(output.chunk):
                    yield json.loads(line.content)


def settings_for(stage: Stage, engine: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the demo's actor is told; of the user's environment it gets PATH and what a real model needs."""
    settings = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), stage.path)),
        "HOST": _LOOPBACK,
        "ACTOR_STATE": str(stage.folder / "state"),
        "IMAGES": "off",
        "SANDBOX": sandbox_word(environ),
    }
    if engine == "scripted":
        return settings | _SCRIPTED | {"SESSION_SCRIPT": str(stage.script)}
    given = {name: environ[name] for name in _MODEL if name in environ}
    around = ",".join(filter(None, (environ.get("NO_PROXY") or environ.get("no_proxy"), _LOOPBACK)))
    return settings | given | {"NO_PROXY": around, "no_proxy": around}


def sandbox_word(environ: Mapping[str, str]) -> str:
    """What holds the demo's sessions: what the user says, else what works here; its own script may go unheld."""
    if environ.get("SANDBOX"):
        return environ["SANDBOX"]
    try:
        return choose("auto").name
    except ActorError:
        return "none"


def _post(port: int, door: str, envelope: Mapping[str, Any]) -> Reply:
    connection = http.client.HTTPConnection(_LOOPBACK, port)
    try:
        connection.request("POST", f"/{door}", json.dumps(envelope), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return Reply(response.status, json.load(response))
    finally:
        connection.close()
