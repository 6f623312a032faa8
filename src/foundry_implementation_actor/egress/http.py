"""The heads of HTTP/1 messages as a proxy reads them: strictly, and what is not understood is refused.

Pure: bytes in, values out. What decides where a request goes is its target, never its `Host` header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from urllib.parse import urlsplit

from foundry_implementation_actor.egress.allowed import Target, port_of, split_port

Header = tuple[bytes, bytes]
"""A header's name as it was written, and its value."""

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_REQUEST = re.compile(rb"([A-Z]{1,32}) ([\x21-\x7e]+) (HTTP/1\.[01])")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_HTTP_PORT, _HTTPS_PORT = 80, 443
_KINDS = {401: "authentication_error", 402: "billing_error", 403: "permission_error", 503: "overloaded_error"}
# These speak of one connection, and the proxy has two.
_OF_ONE_HOP = frozenset((
    b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"te", b"upgrade",
))  # fmt: skip


class RefusedError(Exception):
    """Why a message is not passed on: an HTTP status and words for whoever sent it."""

    def __init__(self, status: int, said: str, target: Target | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.target = target

    def answer(self) -> bytes:
        """A whole answer of the proxy's own, after which the connection ends."""
        return _whole(self.status, b"text/plain; charset=utf-8", f"{self.said}\n")


class ModelRefusedError(RefusedError):
    """Why a request to the model is not passed on, in the form of its service's own errors."""

    def answer(self) -> bytes:
        """As `RefusedError.answer`; a client of the service says these words to its user."""
        error = {"type": _KINDS.get(self.status, "invalid_request_error"), "message": self.said}
        return _whole(self.status, b"application/json", json.dumps({"type": "error", "error": error}))


class Framing(Enum):
    """How the end of a body is told, where that is no number of bytes."""

    CHUNKED = "chunked"
    TO_THE_END = "to the end of the connection"


Body = int | Framing
"""How long a body is: bytes, or how its end is told."""


@dataclass(frozen=True)
class Request:
    """A request to a proxy. `tunnel` is CONNECT; else `path` is what the origin is asked for.

    `headers` are those that are passed on, without the ones of one hop and without `Host`. `own` says that it names
    no host and so is meant for the proxy itself; `secure` that TLS leads to the origin.
    """

    method: bytes
    target: Target
    version: bytes
    tunnel: bool = False
    path: bytes = b"/"
    headers: tuple[Header, ...] = ()
    body: Body = 0
    keep: bool = False
    own: bool = False
    secure: bool = False

    def head(self, *, absolute: bool = False, also: Sequence[Header] = ()) -> bytes:
        """The head for the origin, or in absolute form for another proxy; it asks for one answer only."""
        host = str(self.target).removesuffix(f":{_HTTPS_PORT if self.secure else _HTTP_PORT}").encode()
        wanted = b"http://" + str(self.target).encode() + self.path if absolute else self.path
        own = ((b"Host", host), *also, (b"Connection", b"close"))
        return _head(b" ".join((self.method, wanted, self.version)), (*own, *self.headers))

    def tunnel_head(self, also: Sequence[Header]) -> bytes:
        """The head by which another proxy is asked for the same tunnel."""
        target = str(self.target).encode()
        return _head(b"CONNECT " + target + b" HTTP/1.1", ((b"Host", target), *also))


@dataclass(frozen=True)
class Response:
    """The head of an answer; `line` is its status line and `status` the number in it."""

    line: bytes
    status: int
    headers: tuple[Header, ...]
    body: Body

    def head(self, *, keep: bool) -> bytes:
        """The head as the client gets it; `keep` says that another request may follow."""
        if self.status < 200:
            return _head(self.line, self.headers)
        return _head(self.line, (*self.headers, (b"Connection", b"keep-alive" if keep else b"close")))


def read_request(lines: Sequence[bytes], own: Target | None = None) -> Request:
    """Read the lines of a request's head, without their ends.

    Args:
        lines: the head.
        own: where a request goes that names no host; None when there is no such place.

    Raises:
        RefusedError: it is none that a proxy can pass on.
    """
    words = _REQUEST.fullmatch(lines[0])
    if words is None:
        raise RefusedError(400, "this is a proxy for HTTP/1, and that is no request of it")
    method, wanted, version = words.groups()
    headers = _headers(lines[1:])
    if method == b"CONNECT":
        return Request(method, _authority(wanted.decode(), None), version, tunnel=True)
    at_own = own is not None and wanted.startswith(b"/")
    target, path = (own, wanted) if own is not None and at_own else _absolute(wanted.decode())
    body = _framing(headers) or 0
    if body is Framing.CHUNKED and version == b"HTTP/1.0":
        raise RefusedError(400, "HTTP/1.0 knows no chunks")
    keep = version == b"HTTP/1.1" and b"close" not in _words(headers, b"connection", b"proxy-connection")
    return Request(method, target, version, False, path, _passed_on(headers, but=b"host"), body, keep, own=at_own)


def read_response(lines: Sequence[bytes], method: bytes) -> Response:
    """Read the lines of an answer's head, without their ends; `method` is what it answers.

    Raises:
        RefusedError: it is none that can be passed on.
    """
    try:
        status_line = _STATUS.fullmatch(lines[0])
        headers = _headers(lines[1:])
        framing = _framing(headers)
    except RefusedError as error:
        raise RefusedError(502, "the host's answer cannot be read") from error
    if status_line is None:
        raise RefusedError(502, "the host's answer is not of HTTP/1")
    status = int(status_line[1])
    if status == 101:  # nobody asked for it: `Upgrade` is not passed on
        raise RefusedError(502, "the host switched to another protocol")
    if status < 200 or status in {204, 304} or method == b"HEAD":
        framing = 0
    return Response(lines[0], status, _passed_on(headers), Framing.TO_THE_END if framing is None else framing)


def chunk_size(line: bytes) -> int:
    """The size that a chunk's first line (without its end) states, in bytes.

    Raises:
        RefusedError: it states none.
    """
    size = re.fullmatch(rb"([0-9a-fA-F]{1,15})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?", line)
    if size is None:
        raise RefusedError(400, "a chunk states no size")
    return int(size[1], 16)


def _whole(status: int, kind: bytes, text: str) -> bytes:
    body = text.encode("utf-8", "replace")
    head = ((b"Content-Type", kind), (b"Content-Length", str(len(body)).encode()), (b"Connection", b"close"))
    return _head(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(), head) + body


def _absolute(wanted: str) -> tuple[Target, bytes]:
    scheme, separator, rest = wanted.partition("://")
    if not separator or scheme.lower() != "http":
        raise RefusedError(400, "this is a proxy: ask for http://HOST/PATH, or use CONNECT HOST:PORT")
    end = re.search(r"[/?#]|$", rest)
    assert end is not None, "the end of a text is always found"
    path = urlsplit(f"//x{rest[end.start() :]}")
    whole = (path.path or "/") + (f"?{path.query}" if path.query else "")
    return _authority(rest[: end.start()], _HTTP_PORT), whole.encode()


def _authority(text: str, default: int | None) -> Target:
    try:
        host, port = split_port(text)
        return Target.of(host, default if default and not port else port_of(port or ""))
    except ValueError as error:
        raise RefusedError(400, f"{text[:300]!r} {error}; give HOST or HOST:PORT") from error


def _headers(lines: Sequence[bytes]) -> list[Header]:
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise RefusedError(400, "a header is malformed")
        headers.append((name, value))
    return headers


def _framing(headers: Sequence[Header]) -> Body | None:
    """How the body's end is told; None when nothing is said. Two ways at once are an attack on the next hop."""
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if lengths or codings != [b"chunked"]:
            raise RefusedError(400, "the length of the body is stated in a way that is not taken")
        return Framing.CHUNKED
    if not lengths:
        return None
    length = lengths.pop()
    if lengths or not _LENGTH.fullmatch(length):
        raise RefusedError(400, "the length of the body is no number")
    return int(length)


def _passed_on(headers: Sequence[Header], but: bytes = b"") -> tuple[Header, ...]:
    dropped = _OF_ONE_HOP | {but} | (set(_words(headers, b"connection")) - {b"content-length", b"transfer-encoding"})
    return tuple((name, value) for name, value in headers if name.lower() not in dropped)


def _words(headers: Sequence[Header], *names: bytes) -> list[bytes]:
    """The words of comma lists, in lower case."""
    values = [value for name, value in headers if name.lower() in names]
    return [word.strip().lower() for value in values for word in value.split(b",")]


def _head(first: bytes, headers: Sequence[Header]) -> bytes:
    return b"\r\n".join((first, *(name + b": " + value for name, value in headers), b"", b""))
