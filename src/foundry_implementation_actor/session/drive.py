"""Drives one session to its one end, under limits that the actor holds itself."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.run import Budget, Cause, SessionEnd
from foundry_implementation_actor.egress.meter import Meter
from foundry_implementation_actor.engines.port import (
    GATE,
    Engine,
    Init,
    Other,
    Result,
    SessionOrder,
    StreamEvent,
)
from foundry_implementation_actor.session.cost import at_least
from foundry_implementation_actor.session.lookout import GLANCE_S, Lookout
from foundry_implementation_actor.session.tally import Tally
from foundry_implementation_actor.session.transcript import Line, Lines, record
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.process import Child, Output, Stop, Stream

Start = Callable[[Command, Stop | None], AbstractContextManager[Child]]
"""Starts a session's program, in whatever holds it; leaving the context ends it and all that it started."""

GRACE_S = 5.0
"""How long a session may take to exit once it has given its closing word, in seconds."""


def drive(
    engine: Engine,
    order: SessionOrder,
    budget: Budget,
    journal: Journal,
    stop: Stop | None = None,
    *,
    start: Start = Child,
    places: Sequence[Path] = (),
    meter: Meter | None = None,
    grace_s: float = GRACE_S,
) -> SessionEnd:
    """Run a session until it ends or a limit ends it; when this returns, none of its processes lives.

    Every limit of the budget is held here, whatever the engine does about its own limits. A session that
    gave its closing word and does not exit is finished after `grace_s` seconds. When it gave several,
    the last one counts. The output is stdout and stderr together. What it takes on disk is measured in `places`,
    the directories that it can write to, none inside another; in all of its own when nothing is said. `meter` counts
    at the door by which it reaches the model; None when it reaches none by the actor.

    Raises:
        ActorError: UNFIT when the engine's program is not on the order's PATH, or cannot be given the order,
            or what holds it cannot be set up.
    """
    started = time.monotonic()
    lookout = Lookout(budget, places or (order.tree, order.home, order.temporary))
    with contextlib.ExitStack() as around:
        with _handed_over(engine.secret(order)) as secret_fd:
            child = around.enter_context(start(engine.command(order, secret_fd), stop))
        around.enter_context(lookout.over(child.top))
        meter = meter or Meter()
        end = _Watch(engine, budget, journal, grace_s, lookout, meter, gated=order.gate is not None).until_end(child)
        end = at_least(end, meter.close())
    end = replace(end, seconds=time.monotonic() - started)
    if child.left:
        journal.event("session-escaped", level="error", processes=child.left)
        end = replace(end, cause=Cause.ESCAPED, detail="a process that it started could not be ended")
    journal.result(
        cost_usd=end.cost_usd, input_tokens=end.input_tokens, output_tokens=end.output_tokens,
        cost_estimated=end.cost_estimated,
    )  # fmt: skip
    journal.event("session-end", cause=end.cause.value, turns=end.turns, detail=end.detail)
    return end


@contextlib.contextmanager
def _handed_over(secret: bytes) -> Iterator[int | None]:
    """A descriptor from which the secret can be read once, or None when there is none."""
    if not secret:
        yield None
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, secret)
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


@dataclass
class _Watch:
    """One session under watch: what was heard of it, and when."""

    engine: Engine
    budget: Budget
    journal: Journal
    grace_s: float
    lookout: Lookout
    meter: Meter
    gated: bool = False
    _tally: Tally = field(init=False)
    _lines: Lines = field(default_factory=Lines)
    _started: float = field(default_factory=time.monotonic)
    _heard: float = field(default_factory=time.monotonic)
    _closed: float = 0.0
    _size: int = 0

    def __post_init__(self) -> None:
        self._tally = Tally(self.journal.redact, self.budget.prices, self.meter)

    def until_end(self, child: Child) -> SessionEnd:
        while True:
            output = child.read(max(0.0, min(self._deadline() - time.monotonic(), GLANCE_S)))
            end = self._take(output, child.code) or self._over()
            if end is not None:
                return end

    def _take(self, output: Output, code: int | None) -> SessionEnd | None:
        """Take in what was read; the session's end when that is what it says."""
        self._size += len(output.chunk)
        match output.stream:
            case Stream.STDOUT:
                self._heard = time.monotonic()
                return self._follow(self._lines.feed(output.chunk))
            case Stream.STDERR:
                self._tally.hear(output.chunk)
            case Stream.STOPPED:
                return self._tally.cut_off(Cause.STOPPED, "the actor is stopping")
            case Stream.ENDED:
                return self._follow(self._lines.rest()) or self._tally.closed(code)
        return None

    def _follow(self, lines: Iterator[Line]) -> SessionEnd | None:
        """Count and record the events of these lines, up to the turn or the message that is one too many."""
        for line in lines:
            for event in self._events(line):
                self._tally.count(event)
                if isinstance(event, Result):
                    self._closed = time.monotonic()
                self.journal.transcript(record(event, self.journal.redact))
                if self.gated and isinstance(event, Init) and f"{GATE}: connected" not in event.mcp_servers:
                    return self._tally.cut_off(Cause.NO_GATE, ", ".join(event.mcp_servers) or "it knows of none")
                if self._tally.turns > self.budget.turns:
                    return self._cut_off(Cause.TURNS, f"began turn {self._tally.turns}")
                if self._is_too_dear():
                    return self._cut_off(Cause.MONEY, self._cost())
        return None

    def _is_too_dear(self) -> bool:
        most = self.budget.cost_usd
        return self.meter.exhausted or (bool(most) and self._tally.cost_usd > most)

    def _cost(self) -> str:
        return f"cost about {self._tally.cost_usd:.2f} US dollars"

    def _events(self, line: Line) -> tuple[StreamEvent, ...]:
        if line.dropped:
            head = line.content.decode("utf-8", "replace")
            return (Other("line-too-long", f"{line.dropped} bytes of this line were dropped: {head}"),)
        return self.engine.read(line.content)

    def _deadline(self) -> float:
        """The moment at which a limit is reached if nothing more is heard."""
        patient_until = self._closed + self.grace_s if self._tally.idle else self._heard + self.budget.silence_s
        return min(self._started + self.budget.clock_s, patient_until)

    def _over(self) -> SessionEnd | None:
        """The session's end when one of its limits is reached."""
        budget, now = self.budget, time.monotonic()
        if self._size > budget.output_bytes:
            return self._cut_off(Cause.OUTPUT, f"wrote more than {budget.output_bytes:,} bytes")
        if self._is_too_dear():
            return self._cut_off(Cause.MONEY, self._cost())
        if self.lookout.found is not None:
            return self._cut_off(*self.lookout.found)
        if now >= self._started + budget.clock_s:
            return self._cut_off(Cause.CLOCK, f"ran for {budget.clock_s} seconds")
        if now >= self._deadline():
            return self._cut_off(Cause.SILENT, f"said nothing for {budget.silence_s} seconds")
        return None

    def _cut_off(self, cause: Cause, detail: str) -> SessionEnd:
        # Its closing word was given: what it failed to do after that is to exit.
        return self._tally.closed(None) if self._tally.idle else self._tally.cut_off(cause, detail)
