"""What a session has cost so far, counted by the actor from what the stream says of each message.

What the session's program asks of the model passes the actor's door too, and is counted there once more: of both
counts the larger holds. The stream knows no requests but the program's own, the door no engine without one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from foundry_implementation_actor.domain.price import Cost, Price, Prices, Usage
from foundry_implementation_actor.domain.run import SessionEnd
from foundry_implementation_actor.egress.meter import Charge
from foundry_implementation_actor.engines.port import Result, Spent

# The stream states a message's output before it is written and never again. English and code have about four
# bytes a token; other scripts have more bytes a token, so that this rather counts too much.
_BYTES_A_TOKEN = 4
# A message is stated once for each of its blocks, one after the other; older ones are settled.
_OPEN_MESSAGES = 1_000


class _Message(NamedTuple):
    price: Price
    usage: Usage
    written: int

    @property
    def likely(self) -> Usage:
        return self.usage._replace(output=max(self.usage.output, self.written // _BYTES_A_TOKEN))


@dataclass
class Ledger:
    """The money of one session, sub-agents included.

    `stated` is the price of the tokens that the stream states, `likely` also has the output that was
    written and not yet stated. Both in US dollars.
    """

    prices: Prices
    stated: float = 0.0
    likely: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    _unpriced: bool = False
    _guessed: bool = False
    _open: OrderedDict[str, _Message] = field(default_factory=OrderedDict)

    def count(self, spent: Spent) -> None:
        """Take in what one piece of a message says; several pieces of one message count once."""
        price, known = self.prices.of(spent.model)
        before = self._open.pop(spent.message, None)
        now = _Message(price, spent.usage, spent.written)
        if before is not None:
            now = _Message(price, spent.usage.larger(before.usage), spent.written + before.written)
            self._book(before, -1)
        self._book(now, 1)
        self._unpriced |= not known
        self._guessed |= now.likely != now.usage
        self._open[spent.message] = now
        if len(self._open) > _OPEN_MESSAGES:
            self._open.popitem(last=False)

    def cost(self, result: Result | None) -> Cost:
        """What the session has cost: its own total when that is not less than what was counted here."""
        reported = result.cost_usd if result else 0.0
        own = self.stated if reported else self.likely
        if own <= reported:
            return Cost(reported, estimated=False)
        return Cost(own, self._unpriced or (self._guessed and not reported))

    def _book(self, message: _Message, sign: int) -> None:
        self.stated += sign * message.price.cost(message.usage)
        self.likely += sign * message.price.cost(message.likely)
        self.input_tokens += sign * message.usage.all_input
        self.output_tokens += sign * message.likely.output


def at_least(end: SessionEnd, charge: Charge) -> SessionEnd:
    """A session's end, whose cost and tokens are not less than what its door counted."""
    end = replace(
        end,
        input_tokens=max(end.input_tokens, charge.input_tokens),
        output_tokens=max(end.output_tokens, charge.output_tokens),
    )
    cost = charge.cost
    return replace(end, cost_usd=cost.usd, cost_estimated=cost.estimated) if cost.usd > end.cost_usd else end
