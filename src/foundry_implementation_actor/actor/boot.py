"""From a folder with a sidecar to a framework `Actor` that answers both doors."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from papeete_actor_synchronous_messaging.actor import Actor, Refusal

from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.handler import make_implement_task
from foundry_implementation_actor.actor.task_file import advice
from foundry_implementation_actor.definition import conformance
from foundry_implementation_actor.definition.cards import CARDS, missing
from foundry_implementation_actor.definition.render import render_cards
from foundry_implementation_actor.domain.error import ActorError, Code, ConfigError
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.sidecar.config import CapabilityConfig

_VERBS = {Door.IMPLEMENT: "request", Door.ASSESS: "query"}


@contextlib.contextmanager
def cards_of(config: CapabilityConfig, folder: Path) -> Iterator[Path]:
    """The folder of the cards: the sidecar's own, or a temporary one with the definition's.

    Raises:
        ConfigError: the cards beside the sidecar are incomplete or do not conform.
    """
    beside = folder.parent if folder.is_file() else folder
    report = conformance.check(beside)
    if report.errors:
        raise ConfigError("\n".join(report.errors), hint="run render-cards to write them again")
    if len(missing(beside)) < len(CARDS):
        yield beside
        return
    with tempfile.TemporaryDirectory(prefix=f"{config.actor_slug}-cards-") as rendered:
        render_cards(config, rendered)
        yield Path(rendered)


def boot(cards: Path, config: CapabilityConfig, engine: ClaudeCodeEngine, mailbox: Any = None) -> Actor:
    """The framework's actor on these cards, registered with `mailbox` when one is given."""
    return Actor.from_card(
        cards, mailbox=mailbox, engines={config.engine: engine}, actions={"implement-task": make_implement_task(config)}
    )


def answer_once(
    folder: Path, config: CapabilityConfig, engine: ClaudeCodeEngine, door: Door, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """Put one request through the actor's own membrane, without a server.

    In the main thread, SIGINT and SIGTERM end the run in good order meanwhile; a second one is not
    waited for.

    Raises:
        ActorError: what the run raised; BAD_REQUEST when the membrane refused the payload.
    """
    with cards_of(config, folder) as cards:
        actor = boot(cards, config, engine)
    try:
        with _stopped_by_signals(engine):
            return dict(actor.receive(verb=_VERBS[door], door=door.value, payload=dict(payload), from_="command-line"))
    except Refusal as refusal:
        raise _advised(_cause(refusal), payload) from refusal


@contextlib.contextmanager
def _stopped_by_signals(engine: ClaudeCodeEngine) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, _frame: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        engine.stop()

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _advised(error: ActorError, payload: Mapping[str, Any]) -> ActorError:
    if error.hint or error.code is not Code.BAD_REQUEST:
        return error
    return ActorError(error.code, error.message, hint=advice(payload), where=error.where)


def _cause(refusal: BaseException) -> ActorError:
    """The error that stands behind a refusal; the refusal itself when the membrane made it."""
    at: BaseException | None = refusal
    while at is not None:
        if isinstance(at, ActorError):
            return at
        at = at.__cause__
    return ActorError(Code.BAD_REQUEST, str(refusal))
