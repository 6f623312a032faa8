"""What a session has done so far, and what its end means: counting and judging, no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from foundry_implementation_actor.domain.price import Prices
from foundry_implementation_actor.domain.run import Cause, SessionEnd
from foundry_implementation_actor.egress.meter import Meter
from foundry_implementation_actor.engines.port import Fault, Init, Result, Said, Spent, StreamEvent, ToolCall
from foundry_implementation_actor.session.cost import Ledger

_STDERR_KEPT = 64 * 1024
_STDERR_TOLD = 4096
_CAUSES: dict[Fault, Cause] = {
    "": Cause.FINISHED,
    "turns": Cause.TURNS,
    "money": Cause.MONEY,
    "provider": Cause.PROVIDER,
    "engine": Cause.CRASHED,
}


@dataclass
class Tally:
    """Counts the turns and the money of one session and keeps its last result.

    Only the main session's turns count, as only they count against the engine's own limit; a turn
    that the engine reports in several pieces counts once. Sub-agents cost money all the same. `meter` counts
    what it asks of the model, whether its stream says so or not. `redact` hides secrets in what is told of its
    stderr, before that is cut.
    """

    redact: Callable[[str], str] = str
    prices: Prices = field(default_factory=Prices)
    meter: Meter = field(default_factory=Meter)
    result: Result | None = None
    _turns: set[str] = field(default_factory=set)
    _last_text: str = ""
    _reopened: bool = False
    _stderr: bytes = b""
    _ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self._ledger = Ledger(self.prices)

    @property
    def turns(self) -> int:
        """The turns begun so far."""
        return len(self._turns)

    @property
    def cost_usd(self) -> float:
        """What it has likely cost so far, in US dollars."""
        return max(self._ledger.likely, self.meter.likely_usd)

    @property
    def idle(self) -> bool:
        """Whether its closing word has been given and no work has begun since."""
        return self.result is not None and not self._reopened

    def count(self, event: StreamEvent) -> None:
        """Take one event into account."""
        if isinstance(event, Result):
            self.result, self._reopened = event, False
        elif isinstance(event, Init | Said | ToolCall):
            self._reopened = True
        if isinstance(event, Said | ToolCall) and event.turn:
            self._turns.add(event.turn)
        if isinstance(event, Spent):
            self._ledger.count(event)
        if isinstance(event, Said) and event.kind == "text":
            self._last_text = event.text

    def hear(self, stderr: bytes) -> None:
        """Keep the end of what the session wrote to stderr."""
        self._stderr = (self._stderr + stderr)[-2 * _STDERR_KEPT :]

    def cut_off(self, cause: Cause, detail: str) -> SessionEnd:
        """The end of a session that the actor ended before it gave its closing word."""
        return self._end(cause, detail, self._last_text)

    def closed(self, code: int | None) -> SessionEnd:
        """The end of a session that gave its closing word, or whose process ended with `code`.

        `code` is None when the process had to be ended after the closing word, and then says nothing.
        """
        if self.result is None:
            return self._end(
                Cause.CRASHED, self._how(f"ended with {_exit(code)} and without a result"), self._last_text
            )
        cause = _CAUSES[self.result.fault]
        if cause is Cause.PROVIDER and self.meter.exhausted:  # it was this actor that refused
            cause = Cause.MONEY
        if cause is not Cause.FINISHED:
            return self._end(cause, self.result.text or self._how(f"ended with {_exit(code)}"), self.result.text)
        if code:
            how = self._how(f"gave a result without an error and then ended with {_exit(code)}")
            return self._end(Cause.CRASHED, how, self.result.text)
        return self._end(Cause.FINISHED, "", self.result.text or self._last_text)

    def _how(self, what: str) -> str:
        kept = self._stderr[-_STDERR_KEPT:]
        if len(kept) < len(self._stderr):
            # From the first whole word on: a cut word could be half a secret, which redaction would miss.
            kept = b"".join(kept.split(maxsplit=1)[1:])
        said = self.redact(kept.decode("utf-8", "replace")).strip()
        if len(said) > _STDERR_TOLD:
            said = said[-_STDERR_TOLD:].split(maxsplit=1)[-1]
        return f"{what}; its last words on stderr: {said}" if said else what

    def _end(self, cause: Cause, detail: str, text: str) -> SessionEnd:
        known = self.result or Result("")
        cost = self._ledger.cost(self.result)
        return SessionEnd(
            cause=cause,
            text=text,
            detail=detail,
            turns=max(known.turns, self.turns),
            cost_usd=cost.usd,
            input_tokens=known.input_tokens or self._ledger.input_tokens,
            output_tokens=known.output_tokens or self._ledger.output_tokens,
            cost_estimated=cost.estimated,
        )


def _exit(code: int | None) -> str:
    if code is None:
        return "no exit of its own"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
