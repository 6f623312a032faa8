"""A request's body, read within limits and checked: `{"from": "<caller>", "payload": {…}}`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.json_text import read_json
from foundry_implementation_actor.service.reply import Reply, problem

_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


@dataclass(frozen=True)
class Envelope:
    """Who asks, and what; the payload's own fields are the membrane's to check."""

    caller: str
    payload: dict[str, Any]

    @property
    def task_id(self) -> str:
        """The task that the payload names, empty when it names none."""
        task_id = self.payload.get("task_id")
        return task_id if isinstance(task_id, str) else ""


class NotAccepted(Exception):  # noqa: N818 - it is an answer on its way out, named as such
    """A request that is answered before it reaches the actor."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.error)
        self.reply = reply


async def read_envelope(request: Request, *, limit: int, timeout_s: float) -> Envelope:
    """Read and check a request's body of at most `limit` bytes, all of it within `timeout_s` seconds.

    Raises:
        NotAccepted: with the reply that says what is wrong: 400, 408 or 413.
    """
    try:
        async with asyncio.timeout(timeout_s):
            raw = await _read_body(request, limit)
    except TimeoutError:
        said = f"the body did not arrive within {timeout_s:g} seconds; send it whole"
        raise NotAccepted(problem(408, "timeout", said, connection="close")) from None
    except ClientDisconnect:
        raise NotAccepted(problem(400, "caller-left", "the connection ended before the body did")) from None
    try:
        return check_envelope(raw)
    except ActorError as error:
        raise NotAccepted(problem(400, error.code.value, str(error))) from None


def check_envelope(raw: bytes) -> Envelope:
    """The envelope that these bytes hold; further keys beside the two are let be.

    Raises:
        ActorError: BAD_REQUEST, they hold none; the message says what came and what was expected.
    """
    try:
        value = _read_json(raw)
    except ValueError as error:
        raise _wrong(str(error)) from None
    if not isinstance(value, dict):
        raise _wrong(f'the body must be a JSON object with "from" and "payload", not {_kind(value)}')
    caller, payload = value.get("from"), value.get("payload")
    if not isinstance(caller, str) or not caller.strip():
        raise _wrong(f'"from" must be a non-empty string that names the caller, not {_kind(caller)}')
    if not isinstance(payload, dict):
        raise _wrong(f'"payload" must be an object, not {_kind(payload)}')
    return Envelope(caller, payload)


async def _read_body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        _refuse_size(limit)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            _refuse_size(limit)
    return bytes(body)


def _refuse_size(limit: int) -> NoReturn:
    raise NotAccepted(problem(413, "too-large", f"the body is larger than {limit:,} bytes", unread=True))


def _read_json(raw: bytes) -> Any:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the body is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise ValueError('the body is empty; send {"from": "<caller>", "payload": {…}}')
    return read_json(text, "the body")


def _wrong(message: str) -> ActorError:
    return ActorError(Code.BAD_REQUEST, message)


def _kind(value: object) -> str:
    if value == "":
        return "an empty string"
    return _KINDS.get(type(value), "a number")
