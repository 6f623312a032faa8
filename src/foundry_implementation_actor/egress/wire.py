"""Heads and bodies of HTTP/1 on a connection: read piece by piece, each piece as it came."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple, Self

from foundry_implementation_actor.egress.http import Body, Framing, RefusedError, chunk_size

CHUNK = 65_536
_FAREWELL_S = 1.0
_FAREWELL_BYTES = 1024 * 1024


class Connection(NamedTuple):
    """Both directions of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    def of(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Self:
        """A connection of which `drain` means that the system has taken everything."""
        writer.transport.set_write_buffer_limits(0)
        return cls(reader, writer)

    def end(self) -> None:
        """Close it at once. What was drained arrives; a peer that reads nothing cannot keep it open."""
        self.writer.transport.abort()


class Piece(NamedTuple):
    """A part of a body as it came: of its content, or a line by which chunks are told apart.

    After the last one comes no content; without it, nobody can take the body for whole.
    """

    content: bytes
    is_body: bool = True
    is_last: bool = False


async def read_head(reader: asyncio.StreamReader, most: int, first: bytes = b"") -> list[bytes]:
    """The lines of a head of at most `most` bytes, without their ends; `first` was read of it already.

    Raises:
        RefusedError: it is too large or malformed.
        EOFError: the connection ends before it.
    """
    lines: list[bytes] = []
    size = 0
    while line := await _head_line(reader, first, begun=bool(lines)):
        lines.append(line)
        first = b""
        size += len(line) + 2
        if size > most:
            raise RefusedError(431, f"the head has more than {most:,} bytes")
    if not lines:
        raise RefusedError(400, "the head is empty")
    return lines


async def _head_line(reader: asyncio.StreamReader, first: bytes, *, begun: bool) -> bytes:
    try:
        return await _line(reader, first)
    except EOFError as error:
        if begun:
            raise RefusedError(400, "the head is cut off") from error
        raise


async def pieces(reader: asyncio.StreamReader, body: Body) -> AsyncIterator[Piece]:
    """A body as it comes, its chunks' own lines included.

    Raises:
        RefusedError: it ends too early, or its chunks are malformed.
    """
    if body is Framing.TO_THE_END:
        while chunk := await reader.read(CHUNK):
            yield Piece(chunk)
    elif body is Framing.CHUNKED:
        async for piece in _chunks(reader):
            yield piece
    else:
        assert isinstance(body, int), "there is no third framing"
        left = body
        async for chunk in _bytes(reader, body):
            left -= len(chunk)
            yield Piece(chunk, is_last=not left)


async def say_and_leave(client: Connection, content: bytes) -> None:
    """Send the last word and take in what is still being sent, so that it gets to be read."""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(_FAREWELL_S):
            client.writer.write(content)
            await client.writer.drain()
            client.writer.write_eof()
            left = _FAREWELL_BYTES
            while left > 0 and (chunk := await client.reader.read(CHUNK)):
                left -= len(chunk)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
    size = 1
    while size:
        line = await _body_line(reader)
        size = chunk_size(line)
        yield Piece(line + b"\r\n", is_body=False, is_last=not size)
        if size:
            async for chunk in _bytes(reader, size):
                yield Piece(chunk)
            if await _body_line(reader):
                raise RefusedError(400, "a chunk is longer than it says")
            yield Piece(b"\r\n", is_body=False)
    while line := await _body_line(reader):
        yield Piece(line + b"\r\n", is_body=False)
    yield Piece(b"\r\n", is_body=False)


async def _body_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await _line(reader)
    except EOFError as error:
        raise RefusedError(400, "the body ends too early") from error


async def _bytes(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        chunk = await reader.read(min(size, CHUNK))
        if not chunk:
            raise RefusedError(400, "the body ends too early")
        size -= len(chunk)
        yield chunk


async def _line(reader: asyncio.StreamReader, first: bytes = b"") -> bytes:
    """One line without its CRLF; `first` was read of it already."""
    try:
        line = first + (b"" if first == b"\n" else await reader.readuntil(b"\n"))
    except asyncio.LimitOverrunError as error:
        raise RefusedError(431, "a line of the head is too long") from error
    except asyncio.IncompleteReadError as error:
        if not error.partial and not first:
            raise
        raise RefusedError(400, "the head is cut off") from error
    if not line.endswith(b"\r\n"):
        raise RefusedError(400, "a line of the head does not end with CRLF")
    return line[:-2]
