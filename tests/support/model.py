"""A scripted model: the Anthropic Messages API on loopback, saying what a test wrote down beforehand.

    with ScriptedModel([use("Write", file_path="/x", content="y"), say("done")]) as model:
        ...  # ANTHROPIC_BASE_URL=model.url

Only requests that carry tools take a turn; others (titles, probes) are answered "ok". Several sessions
at once each get a script of their own by `route`.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from foundry_implementation_actor.demo.loopback import LoopbackServer

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request as it arrived; header names in lower case, `body` empty when there was no JSON object."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the session offers."""
        return [tool["name"] for tool in self.body.get("tools", [])]

    @property
    def system(self) -> str:
        """The system prompt, its blocks joined by newlines."""
        return _words(self.body.get("system", ""))

    @property
    def messages(self) -> list[str]:
        """The text of each message, tool results included."""
        return [_words(message["content"]) for message in self.body.get("messages", [])]

    @property
    def cwd(self) -> str:
        """The directory the session says it works in, so that a turn can name a file in it."""
        found = re.search(r"working directory: (\S+)", json.dumps(self.body), re.IGNORECASE)
        assert found, "the request names no working directory"
        return found[1].split("\\n")[0]


@dataclass(frozen=True)
class Turn:
    """What the model does when its turn comes; built by `say`, `use`, `turn`, `fail` and `hang`.

    `after` holds the answer back until it is set. `hangs` never answers until the server closes.
    `cost` replaces entries of the usage that is reported.
    """

    blocks: tuple[Json, ...] = ()
    status: int = 200
    error: str = ""
    after: threading.Event | None = None
    hangs: bool = False
    stop_reason: str = ""
    cost: Mapping[str, int] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why the model stopped, as the protocol words it."""
        uses_tool = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop_reason or ("tool_use" if uses_tool else "end_turn")

    @property
    def usage(self) -> Json:
        """The tokens that this turn claims."""
        nothing_cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"input_tokens": 1000, "output_tokens": 50, **nothing_cached, **self.cost}


# A turn that depends on the request, for a path that is known only when the session runs.
Step = Turn | Callable[[Request], Turn]


def text(words: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": words}


def tool(name: str, **arguments: Any) -> Json:
    """A block that asks for a tool."""
    return {"type": "tool_use", "name": name, "input": arguments}


def say(words: str) -> Turn:
    """The model says this and ends its turn."""
    return Turn((text(words),))


def use(name: str, **arguments: Any) -> Turn:
    """The model asks for one tool."""
    return Turn((tool(name, **arguments),))


def turn(*blocks: Json, after: threading.Event | None = None, **cost: int) -> Turn:
    """Several blocks in one turn."""
    return Turn(blocks, after=after, cost=cost)


def fail(status: int, kind: str = "api_error") -> Turn:
    """The provider answers with an HTTP error, for example 529 `overloaded_error`."""
    return Turn(status=status, error=kind)


def hang() -> Turn:
    """The provider takes the request and never answers."""
    return Turn(hangs=True)


@dataclass
class _Script:
    applies: Callable[[Json], bool]
    steps: Sequence[Step]
    then: Step
    taken: int = 0

    def take(self) -> Step:
        self.taken += 1
        return self.steps[self.taken - 1] if self.taken <= len(self.steps) else self.then


class ScriptedModel(LoopbackServer):
    """Serves turns in order while it is open; `requests` holds what was asked.

    Args:
        steps: the turns for every request that no route claims.
        then: the turn for each request after the last.
    """

    def __init__(self, steps: Sequence[Step] = (), *, then: Step = say("END OF SCRIPT")) -> None:  # noqa: B008 - frozen
        super().__init__(_Handler)
        self.requests: list[Request] = []
        self._scripts = [_Script(lambda _: True, list(steps), then)]
        self._turns = threading.Lock()
        self.message_ids = itertools.count(1)

    @property
    def asked(self) -> list[Request]:
        """The requests that took a turn, in the order of their arrival."""
        return [request for request in self.requests if request.tools]

    def route(
        self,
        applies: Callable[[Json], bool],
        steps: Sequence[Step],
        *,
        then: Step = say("END OF SCRIPT"),  # noqa: B008 - frozen
    ) -> Self:
        """Give the requests whose body `applies` to a script of their own; the first route that applies wins."""
        with self._turns:
            self._scripts.insert(len(self._scripts) - 1, _Script(applies, list(steps), then))
        return self

    def answer(self, request: Request) -> Turn:
        """Note a request and take the turn that is due for it."""
        with self._turns:
            self.requests.append(request)
            if not request.tools:
                return say("ok")
            step = next(script for script in self._scripts if script.applies(request.body)).take()
            number = len(self.requests)
        due = step if isinstance(step, Turn) else step(request)
        return replace(due, blocks=tuple(_identified(block, f"{number}_{at}") for at, block in enumerate(due.blocks)))


def mentions(words: str) -> Callable[[Json], bool]:
    """For `route`: the requests in whose body these words stand."""
    return lambda body: words in json.dumps(body, ensure_ascii=False)


def _identified(block: Json, name: str) -> Json:
    return {**block, "id": f"toolu_{name}"} if block["type"] == "tool_use" else block


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or _words(block.get("content") or "") for block in content)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def log_message(self, *args: object) -> None:
        """Nothing on stderr: what was asked is kept in `ScriptedModel.requests`."""

    def do_HEAD(self) -> None:
        self._read()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._read()
        self._error(404, "not_found_error")

    def do_POST(self) -> None:
        request = self._read()
        path = request.path.partition("?")[0]
        if path.endswith("/v1/messages/count_tokens"):
            self._json(200, {"input_tokens": len(json.dumps(request.body)) // 4 + 1})
        elif path.endswith("/v1/messages"):
            self._play(self.server.answer(request), request.body)
        else:
            self._error(404, "not_found_error")

    def _read(self) -> Request:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body if isinstance(body, dict) else {})
        if self.command != "POST" or not self.path.partition("?")[0].endswith("/v1/messages"):
            self.server.requests.append(request)
        return request

    def _play(self, due: Turn, body: Json) -> None:
        if due.hangs:
            self.server.closing.wait()
            self.close_connection = True
            return
        if due.after:
            _wait_for_either(due.after, self.server.closing)
        if due.status != 200:
            self._error(due.status, due.error)
            return
        message = {
            "id": f"msg_{next(self.server.message_ids)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
        }
        if body.get("stream"):
            self._stream(due, message)
        else:
            ended = {"stop_reason": due.reason, "stop_sequence": None, "usage": due.usage}
            self._json(200, {**message, "content": list(due.blocks), **ended})

    def _stream(self, due: Turn, message: Json) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        opening: Json = {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**due.usage, "output_tokens": 1},
        }
        self._event("message_start", message={**message, **opening})
        for index, block in enumerate(due.blocks):
            start, delta = _as_delta(block)
            self._event("content_block_start", index=index, content_block=start)
            self._event("content_block_delta", index=index, delta=delta)
            self._event("content_block_stop", index=index)
        self._event("message_delta", delta={"stop_reason": due.reason, "stop_sequence": None}, usage=due.usage)
        self._event("message_stop")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, name: str, **fields: Any) -> None:
        event = f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))

    def _error(self, status: int, kind: str) -> None:
        self._json(status, {"type": "error", "error": {"type": kind, "message": "scripted"}})

    def _json(self, status: int, answer: Json) -> None:
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _as_delta(block: Json) -> tuple[Json, Json]:
    """A block as the stream sends it: an empty one, then all of its content at once."""
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def _wait_for_either(wanted: threading.Event, closing: threading.Event) -> None:
    while not closing.is_set() and not wanted.wait(0.05):
        continue
