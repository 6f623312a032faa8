"""`ClaudeCodeEngine`: the framework's engine port, behind which whole runs are executed.

The port's one method serves both doors. A run is one unit from the first check to the last image:
nothing is handed over half-done between the engine and the door's handler, so nothing can be lost
or left behind between them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from papeete_actor_synchronous_messaging.engine import EngineError

from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.actor.wiring import workshop
from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Accepted, Door
from foundry_implementation_actor.domain.task import Task, read_task
from foundry_implementation_actor.runs.assess import assess
from foundry_implementation_actor.runs.earlier import still_holds
from foundry_implementation_actor.runs.implement import implement
from foundry_implementation_actor.runs.inline import Answer, Holds, InlineRuns
from foundry_implementation_actor.runs.workshop import Workshop
from foundry_implementation_actor.system.files import exhausted
from foundry_implementation_actor.system.journal import CORRELATION, Sink, new_correlation_id, to_logging
from foundry_implementation_actor.system.secrets import Redact
from foundry_implementation_actor.workspace.checkout import sweep


class ClaudeCodeEngine:
    """Answers both doors of the actor by driving sessions.

    Args:
        config: the capability that is served.
        github_token: reads and pushes the repository; GITHUB_TOKEN when not given.
        claude_bin: the `claude` program, a name on PATH or a path.
        clone_timeout: seconds for each git operation; likewise the other limits, in seconds or
            turns. Each takes its value from `settings` when not given.
        settings: everything else; read from the environment when not given.
        sink: where records go, by default to `logging`.

    Raises:
        SettingsError: a setting is wrong or GITHUB_TOKEN is missing.
    """

    def __init__(
        self,
        config: Capability,
        *,
        github_token: str | None = None,
        claude_bin: str | None = None,
        clone_timeout: int | None = None,
        fetch_timeout: int | None = None,
        session_timeout: int | None = None,
        max_turns: int | None = None,
        assess_timeout: int | None = None,
        assess_max_turns: int | None = None,
        settings: Settings | None = None,
        sink: Sink = to_logging,
    ) -> None:
        given: dict[str, Any] = {
            "github_token": github_token, "clone_timeout_s": clone_timeout, "fetch_timeout_s": fetch_timeout,
            "session_timeout_s": session_timeout, "max_turns": max_turns,
            "assess_timeout_s": assess_timeout, "assess_max_turns": assess_max_turns,
        }  # fmt: skip
        settings = settings or Settings.from_env()
        settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
        self.config = config
        self.name = config.engine
        self._shop = workshop(config, settings, claude_bin or "claude", sink)
        self._runs = InlineRuns(settings.max_sessions)
        sweep(settings.state, self._shop.journal)

    def judge(self, *, system: str, prompt: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Answer one request; `prompt` is `verb: …`, `door: …` and the situation as JSON.

        Raises:
            EngineError: the request is wrong, the host is not fit, or the run was stopped; the text
                is for the caller.
        """
        journal = self._shop.journal.bound(correlation_id=_correlation_id())
        try:
            door, payload = _situation(prompt)
            journal = journal.bound(task_id=_named(payload))
            task = read_task(door, payload)
            shop = replace(self._shop, journal=journal)
            key = task.digest(self.config.capability)
            # Two attempts at one task would push over each other.
            alone = task.task_id if task.door is Door.IMPLEMENT else key
            return self._runs.answer(key, lambda: _run(shop, task, system, schema), alone=alone)
        except (ActorError, OSError) as raised:
            error = raised if isinstance(raised, ActorError) else exhausted(raised)
            if error is None:
                raise
            journal.event("refused-with-error", level="error", code=error.code.value, error=str(error))
            told = _redacted(error, journal.redact)
            raise EngineError(str(told)) from told

    def lacks(self) -> list[str]:
        """What this host lacks for a run, a line each with what mends it; empty when a run could be made.

        Asks what a run asks before its session; with images on that takes up to 20 seconds.
        """
        return [self._shop.journal.redact(str(missing)) for missing in self._shop.lacks()]

    def stop(self) -> None:
        """End every session and command in flight; their callers are told that the actor is stopping."""
        self._shop.stop.set()


def _run(shop: Workshop, task: Task, system: str, schema: Mapping[str, Any] | None) -> tuple[Answer, Holds | None]:
    """One run's answer, and how to see that the same request may be given it again without a new run."""
    if shop.stop.is_set():
        # It may have waited in line until now.
        raise ActorError(Code.INTERRUPTED, "the actor is stopping; no session was started", hint="ask again")
    if task.door is Door.ASSESS:
        return assess(shop, task, system, schema), _always
    reply = implement(shop, task, system)
    if isinstance(reply, Accepted):
        return reply.wire(), partial(still_holds, shop, reply)
    return reply.wire(), _always if reply.settled else None


def _always() -> bool:
    return True


def _redacted(error: ActorError, hide: Redact) -> ActorError:
    """The same error for a caller: what a tool or the forge said may hold a secret."""
    return ActorError(error.code, hide(error.message), hint=hide(error.hint), where=hide(error.where))


def _situation(prompt: str) -> tuple[Door, Mapping[str, Any]]:
    """Read the framework's prompt: which door, and what the caller sent."""
    _, door, situation = (*prompt.split("\n", 2), "", "")[:3]
    try:
        return Door(door.removeprefix("door: ").strip()), json.loads(situation)["payload"]
    except (ValueError, KeyError, TypeError) as error:
        doors = ", ".join(Door)
        raise ActorError(Code.BAD_REQUEST, f"this engine answers {doors}, asked as the framework asks") from error


def _named(payload: Mapping[str, Any]) -> str:
    """The task that a payload names, before anything else of it is checked."""
    task_id = payload.get("task_id")
    return task_id if isinstance(task_id, str) else ""


def _correlation_id() -> str:
    """The trace id of the request: from our own service, from OpenTelemetry where it is in use, or new."""
    if CORRELATION.get():
        return CORRELATION.get()
    telemetry = sys.modules.get("opentelemetry.trace")
    if telemetry is not None:
        context = telemetry.get_current_span().get_span_context()
        if context.is_valid:
            return f"{context.trace_id:032x}"
    return new_correlation_id()
