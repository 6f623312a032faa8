"""One request's exchange with its host: passed on both ways as it comes, counted, and cut off when idle."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from foundry_implementation_actor.egress.http import Framing, RefusedError, Request, Response, read_response
from foundry_implementation_actor.egress.route import Way
from foundry_implementation_actor.egress.wire import CHUNK, Connection, pieces, read_head

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass
class Counted:
    """Bytes that went out to hosts and that came back from them."""

    out: int = 0
    back: int = 0


class Onlooker:
    """Is shown what passes, all but the heads' and chunks' own lines; this one takes no interest."""

    def sent(self, content: bytes) -> None:
        """A piece of the request's body, before it is passed on."""

    def complete(self) -> None:
        """The request's body is whole, and its last piece has not yet been passed on.

        Raises:
            RefusedError: it is not to be let go.
        """

    def answered(self, response: Response) -> None:
        """The head of the answer, before it is passed on."""

    def heard(self, content: bytes) -> None:
        """A piece of the answer's body, before it is passed on.

        Raises:
            RefusedError: the answer is to be cut off.
        """

    def end(self) -> None:
        """The exchange is over, however it went."""


class Exchange:
    """A client's connection and the way to its host, for one request; `onlooker` is shown what passes."""

    def __init__(self, client: Connection, way: Way, counted: Counted, head_bytes: int, onlooker: Onlooker) -> None:
        self._client, self._way, self._host = client, way, way.connection
        self._counted, self._head_bytes, self._onlooker = counted, head_bytes, onlooker
        self._begun = False

    async def serve(self, request: Request, idle_s: float) -> bool:
        """Do it; whether another request may follow on the client's connection.

        Raises:
            RefusedError: there is no answer, and none was begun.
            OSError: one side went away, or nothing moved for `idle_s` seconds.
        """
        try:
            async with asyncio.timeout(idle_s) as self._clock:
                self._idle_s = idle_s
                if request.tunnel:
                    await self._tunnel()
                    return False
                return await self._pass_on(request)
        except (RefusedError, TimeoutError) as error:
            if self._begun:
                raise ConnectionAbortedError from error
            if isinstance(error, TimeoutError):
                raise RefusedError(504, f"{request.target} gave no answer in {idle_s:g} seconds") from error
            raise
        finally:
            self._onlooker.end()

    async def _tunnel(self) -> None:
        self._begun = True
        await self._back(_ESTABLISHED)
        halves = [asyncio.ensure_future(self._half(outward=outward)) for outward in (True, False)]
        try:
            await asyncio.gather(*halves)
        finally:
            await ended(*halves)

    async def _half(self, *, outward: bool) -> None:
        here, there = (self._client, self._host) if outward else (self._host, self._client)
        while chunk := await here.reader.read(CHUNK):
            await (self._out(chunk) if outward else self._back(chunk))
        if not there.writer.can_write_eof():  # TLS to a site's proxy knows no half of a connection
            raise EOFError
        there.writer.write_eof()

    async def _pass_on(self, request: Request) -> bool:
        """Send a request and bring its answer, which may come before the request has ended."""
        await self._out(request.head(absolute=self._way.absolute, also=self._way.also))
        sending, bringing = asyncio.ensure_future(self._send(request)), asyncio.ensure_future(self._bring(request))
        try:
            await asyncio.wait({sending, bringing}, return_when=asyncio.FIRST_COMPLETED)
            if not bringing.done() and self._client_gave_up(sending):
                await sending
            keep = await bringing
            # What is left of a body would be read as the next request.
            return keep and sending.done() and sending.exception() is None
        finally:
            await ended(sending, bringing)

    def _client_gave_up(self, sending: asyncio.Task[None]) -> bool:
        """Whether it was not the host that took no more of the request: that one has perhaps answered."""
        return isinstance(sending.exception(), RefusedError) or self._client.reader.exception() is not None

    async def _send(self, request: Request) -> None:
        async for piece in pieces(self._client.reader, request.body):
            if piece.is_body:
                self._onlooker.sent(piece.content)
            if piece.is_last:
                self._onlooker.complete()
            await self._out(piece.content)

    async def _bring(self, request: Request) -> bool:
        response = await self._answer(request)
        while response.status < 200:
            await self._back(response.head(keep=True))
            response = await self._answer(request)
        keep = request.keep and response.body is not Framing.TO_THE_END
        self._begun = True
        self._onlooker.answered(response)
        await self._back(response.head(keep=keep))
        async for piece in pieces(self._host.reader, response.body):
            if piece.is_body:
                self._onlooker.heard(piece.content)
            await self._back(piece.content)
        return keep

    async def _answer(self, request: Request) -> Response:
        try:
            return read_response(await read_head(self._host.reader, self._head_bytes), request.method)
        except (RefusedError, EOFError, ConnectionError) as error:
            raise RefusedError(502, f"{request.target} gave no answer that can be read") from error

    async def _out(self, content: bytes) -> None:
        self._counted.out += len(content)
        await self._write(self._host.writer, content)

    async def _back(self, content: bytes) -> None:
        self._counted.back += len(content)
        await self._write(self._client.writer, content)

    async def _write(self, writer: asyncio.StreamWriter, content: bytes) -> None:
        """Hand bytes on and wait while that side is slow, which counts as idle too."""
        writer.write(content)
        await writer.drain()
        self._clock.reschedule(asyncio.get_running_loop().time() + self._idle_s)


async def ended(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    """Cancel tasks and wait until they are done; what they raise is of no interest any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
