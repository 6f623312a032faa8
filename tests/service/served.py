"""A real server on loopback with the framework's own Actor behind it, for the tests of the service."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from papeete_actor_synchronous_messaging.actor import Actor

from foundry_implementation_actor.service.app import Surface
from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.host import listen
from foundry_implementation_actor.service.mailbox import AsgiMailbox
from foundry_implementation_actor.service.protocol import Connection
from foundry_implementation_actor.service.server import Ending, Server
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.secrets import redactor

SECRET = "not-for-any-eye-9271"

CARDS = {
    "actor.yaml": """
manifest: papeete-actor-manifest/v0
name: Thing-maker
description: makes things for tests
""",
    "actor-data.yaml": """
data: papeete-actor-data/v0
items:
  - {name: task_id, type: string, description: which thing}
  - {name: parts, type: list, description: its parts}
  - {name: made, type: boolean, description: whether it was made}
""",
    "actor-message.yaml": """
message: papeete-actor-message/v1
messages:
  - {name: make-cmd, intent: have a thing made, references: [task_id, parts], optional: [parts]}
  - {name: made-result, intent: say whether it was made, references: [made]}
""",
    "actor-synchronous-messaging.yaml": """
manifest: synchronous-messaging-doors/v1
actions:
  - {id: make, means: makes a thing, completion: made or not, door_schema: make-cmd, completion_schema: made-result}
queries:
  - {id: look, means: looks at a thing, completion: anything, door_schema: make-cmd}
  - {id: judge, means: judges a thing, completion: anything, door_schema: make-cmd, engine: judge}
""",
}

Handler = Callable[..., dict[str, Any]]
Answer = Callable[[str], Any]


@dataclass
class Judge:
    """An engine of the framework's port whose answer a test chooses."""

    answer: Answer = field(default=lambda _prompt: {})
    name: str = "judge"

    def judge(self, *, system: str, prompt: str, schema: dict[str, Any] | None = None) -> Any:
        return self.answer(prompt)


@dataclass
class Reply:
    """One HTTP answer as a client reads it."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> str:
        return str(self.json["error"])


@dataclass
class Service:
    """A running server, what it recorded, and ways to call it."""

    port: int
    records: list[dict[str, Any]]
    calls: Calls
    ask_to_end: Callable[[], None]

    def send(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Reply(response.status, dict(response.headers), response.read())

    def call(self, door: str, payload: Any, caller: Any = "tester", **headers: str) -> Reply:
        return self.send("POST", f"/{door}", json.dumps({"from": caller, "payload": payload}), **headers)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def raw(self, request: bytes, *, close_sending: bool = False) -> bytes:
        """Send bytes and read until the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            if close_sending:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def last_call(self) -> dict[str, Any]:
        """The record of the one call since the records were cleared."""
        [record] = self.events("call")
        return record

    def events(self, name: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["step"] == name]


def read_all(connection: socket.socket) -> bytes:
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


def write_cards(folder: Path) -> Path:
    for name, text in CARDS.items():
        (folder / name).write_text(text)
    return folder


@contextlib.contextmanager
def served(
    folder: Path,
    make: Handler = lambda *_, **__: {"made": True},
    look: Handler = lambda _actor, payload, from_, judged=None: {"seen": payload, "by": from_},
    judge: Answer = lambda _prompt: {},
    *,
    most_calls: int = 256,
    body_timeout_s: float = 30.0,
    head_timeout_s: float = 30.0,
    end_sessions: Callable[[], None] = lambda: None,
    grace_s: float = 30.0,
) -> Iterator[Service]:
    """A server in a thread of this process; it has ended when the block ends."""
    mailbox, records = AsgiMailbox(), list[dict[str, Any]]()
    Actor.from_card(
        write_cards(folder),
        mailbox=mailbox,
        engines={"judge": Judge(judge)},
        actions={"make": make},
        queries={"look": look},
    )
    journal = Journal(sink=lambda line, _meta: records.append(json.loads(line)), redact=redactor([SECRET]))
    calls = Calls(most_calls)
    surface = Surface(mailbox.actor, calls, journal, body_timeout_s=body_timeout_s)
    ending = Ending(calls, end_sessions, grace_s)
    protocol = type("Quick", (Connection,), {"head_timeout_s": head_timeout_s})
    server = Server(surface.app(), ending, journal, protocol)
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    ready, loops = threading.Event(), list[asyncio.AbstractEventLoop]()

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await server.run_on(listening, ready.set)

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="server")
    thread.start()
    assert ready.wait(30)

    def ask_to_end() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed when it has ended already
            loops[0].call_soon_threadsafe(ending.ask)

    try:
        yield Service(port, records, calls, ask_to_end)
    finally:
        ask_to_end()
        thread.join(60)
        listening.close()
        assert not thread.is_alive()
