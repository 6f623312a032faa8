"""The actor's HTTP surface: one POST for each door of its card, and its health (CONTRACT 4)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from papeete_actor_synchronous_messaging.actor import Actor, Refusal
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.envelope import Envelope, NotAccepted, read_envelope
from foundry_implementation_actor.service.reply import Reply, answered, problem
from foundry_implementation_actor.service.trace import correlation_of
from foundry_implementation_actor.system.journal import CORRELATION, Journal

BODY_LIMIT = 2 * 1024 * 1024
BODY_TIMEOUT_S = 30.0

_LONGEST_SHOWN = 256
_KEPT = (Code.TOO_LARGE, Code.BUSY, Code.INTERRUPTED)


@dataclass(frozen=True)
class Surface:
    """What the HTTP surface is made of.

    Args:
        actor: the framework's actor; its card names the doors.
        calls: where calls run and are counted.
        journal: takes one record for each call, refused ones too.
        body_limit: bytes that a request's body may have.
        body_timeout_s: seconds in which the whole body must arrive.
    """

    actor: Actor
    calls: Calls
    journal: Journal
    body_limit: int = BODY_LIMIT
    body_timeout_s: float = BODY_TIMEOUT_S

    @property
    def verbs(self) -> dict[str, str]:
        """Every door's id with the verb that opens it, `request` or `query`."""
        card = self.actor.card
        return {**dict.fromkeys(card.actions, "request"), **dict.fromkeys(card.queries, "query")}

    def app(self) -> Starlette:
        """The ASGI application."""
        doors = [
            Route(f"/{door}", _Door(self, door, verb).answer, methods=["POST"]) for door, verb in self.verbs.items()
        ]
        app = Starlette(
            routes=[Route("/health", self._health, methods=["GET"]), *doors],
            exception_handlers={HTTPException: self._no_way_in},
        )
        app.router.redirect_slashes = False
        return app

    def record(self, reply: Reply, started: float, door: str, envelope: Envelope | None = None) -> None:
        """Write the one record of a call that began at this monotonic time."""
        level = "info" if reply.status < 400 else "warn" if reply.status < 500 else "error"
        self.journal_of(envelope).event(
            "call",
            level=level,
            door=door,
            caller=envelope.caller if envelope else None,
            status=reply.status,
            outcome=reply.outcome,
            duration_ms=round((time.monotonic() - started) * 1000),
            error=reply.error,
        )

    def journal_of(self, envelope: Envelope | None) -> Journal:
        """The journal whose records name the envelope's task, if it names one."""
        return self.journal.bound(task_id=envelope.task_id if envelope else "")

    def shown(self, text: str) -> str:
        """What a caller sent as it may stand in a record or a reply."""
        return clip(self.journal.redact(text), _LONGEST_SHOWN)

    async def _health(self, _request: Request) -> Response:
        if self.calls.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"})

    async def _no_way_in(self, request: Request, error: Exception) -> Response:
        """Answer a path that is no door, and a method that opens none."""
        started = _begin(request)
        allowed = (error.headers or {}).get("Allow") if isinstance(error, HTTPException) else None
        reply = self._not_allowed(request, allowed) if allowed else self._not_found(request)
        self.record(reply, started, door=self.shown(request.url.path))
        return reply.response()

    def _not_found(self, request: Request) -> Reply:
        doors = " or ".join(f"/{door}" for door in self.verbs)
        said = f"there is nothing at {self.shown(request.url.path)}; POST to {doors}, or GET /health"
        return problem(404, "not-found", said, unread=True)

    def _not_allowed(self, request: Request, allowed: str) -> Reply:
        said = f"{self.shown(request.method)} is not understood at {self.shown(request.url.path)}; use {allowed}"
        return problem(405, "not-allowed", said, unread=True, allow=allowed)


@dataclass(frozen=True)
class _Door:
    """One door of the card, answered over HTTP."""

    surface: Surface
    door: str
    verb: str

    async def answer(self, request: Request) -> Response:
        started = _begin(request)
        surface, envelope = self.surface, None
        try:
            envelope = await read_envelope(request, limit=surface.body_limit, timeout_s=surface.body_timeout_s)
            reply = await surface.calls.answer(self._receive, envelope)
        except NotAccepted as refused:
            reply = refused.reply
        except asyncio.CancelledError:  # the server closes with this call unanswered; what is left is to say so
            reply = problem(503, "stopping", "the actor stopped before the answer was there; ask again")
        surface.record(reply, started, self.door, envelope)
        return reply.response()

    def _receive(self, envelope: Envelope) -> Reply:
        """Hand the call to the actor; whatever happens there becomes a reply."""
        hide, receive = self.surface.journal.redact, self.surface.actor.receive
        try:
            return answered(receive(verb=self.verb, door=self.door, payload=envelope.payload, from_=envelope.caller))
        except Refusal as refusal:
            return _refused(refusal, hide(str(refusal)))
        except ActorError as error:
            return problem(error.meaning.http_status, error.code.value, hide(str(error)))
        except BaseException as error:  # noqa: BLE001 - a caller waits: nothing that happens may leave it unanswered
            detail = f"{type(error).__name__}: {error}"
            self.surface.journal_of(envelope).event("internal-error", level="error", error=detail)
            return problem(500, "bug", "internal error; the actor's log holds the detail under this call's trace id")


def _refused(refusal: Refusal, said: str) -> Reply:
    """The contract's 400 for all that the membrane refuses, unless the engine said to ask otherwise or again."""
    error: BaseException | None = refusal
    while error is not None and not isinstance(error, ActorError):
        error = error.__cause__
    if error is None:
        return problem(400, "membrane", said)
    status = error.meaning.http_status if error.code in _KEPT else 400
    return problem(status, error.code.value, said)


def _begin(request: Request) -> float:
    """Give the request its one correlation id; the time at which it came, on the monotonic clock."""
    CORRELATION.set(correlation_of(request.headers.getlist("traceparent")))
    return time.monotonic()
