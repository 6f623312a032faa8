"""The service as a process of its own, started as an operator starts it, and called over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from support.claude import claude_binary
from support.model import ScriptedModel
from support.place import Place

MODEL_TOKEN = "the-models-token-5b21"
PROGRAM = (sys.executable, "-m", "foundry_implementation_actor.cli")


class Answer(NamedTuple):
    """What a call was answered with."""

    status: int
    body: dict[str, Any]


class Serving:
    """`serve --port 0` on a place's instance while it is open; its stdout, line by line, is kept.

    Args:
        folder: the instance.
        environment: the whole environment of the process.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.lines: list[bytes] = []
        self._argv = [*PROGRAM, "serve", str(folder), "--port", "0"]
        self._environment = {**environment, "HOST": "127.0.0.1"}
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read, name="records")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._argv, env=self._environment, stdout=subprocess.PIPE)
        self._reader.start()
        assert self._started.wait(30)
        assert self.lines, "the service ended before it started"
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._reader.join(60)
        assert self._process.returncode == 0

    @property
    def pid(self) -> int:
        """The process id of the service."""
        return self._process.pid

    @property
    def records(self) -> list[dict[str, Any]]:
        """What it has recorded so far."""
        return [json.loads(line) for line in list(self.lines)]

    def recorded(self, step: str, phase: str = "") -> list[dict[str, Any]]:
        """The records of one kind."""
        return [r for r in self.records if r.get("step") == step and (not phase or r.get("phase") == phase)]

    def connect(self) -> http.client.HTTPConnection:
        """A connection that nothing was sent on."""
        return http.client.HTTPConnection("127.0.0.1", self.records[0]["port"], timeout=120)

    def send(self, connection: http.client.HTTPConnection, door: str, payload: Any, **headers: str) -> None:
        """Put a call on a connection without waiting for its answer."""
        connection.request("POST", f"/{door}", json.dumps({"from": "tester", "payload": payload}), headers)

    def call(self, door: str, payload: Any, **headers: str) -> Answer:
        """Call a door and wait for the answer."""
        with contextlib.closing(self.connect()) as connection:
            self.send(connection, door, payload, **headers)
            return read_answer(connection)

    def health(self) -> Answer:
        """Ask for the service's health."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", "/health")
            return read_answer(connection)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as stdout:
            for line in stdout:
                self.lines.append(line)
                if b"actor-started" in line:
                    self._started.set()
        self._started.set()


def read_answer(connection: http.client.HTTPConnection) -> Answer:
    """The answer to what was sent on a connection."""
    response = connection.getresponse()
    return Answer(response.status, json.load(response))


def real_environment(place: Place, model: ScriptedModel, **settings: str) -> dict[str, str]:
    """The environment of an actor whose sessions are the real command line and talk to this model."""
    binary = claude_binary()
    environment = place.environment() | {
        "SESSION_ENGINE": "claude-code",
        "CLAUDE_CODE_OAUTH_TOKEN": MODEL_TOKEN,
        "ANTHROPIC_BASE_URL": model.url,
        "SANDBOX": "auto",
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
    }
    del environment["SESSION_SCRIPT"]
    return environment | settings
