"""What one session asks of the model, in money, summed up where all of it passes: at the actor's own door."""

from __future__ import annotations

import threading
from typing import NamedTuple

from foundry_implementation_actor.domain.price import Cost, Prices
from foundry_implementation_actor.egress.http import ModelRefusedError


class Charge(NamedTuple):
    """What answers cost in US dollars: `likely` so far, at `most` in the end, and `cut` when the actor ends them now.

    Where nothing is under way the three are the same. The tokens are those of `cut`; `guesses` is how many of the
    answers were not read to their end, or have no price.
    """

    likely: float = 0.0
    most: float = 0.0
    cut: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    guesses: int = 0

    @property
    def cost(self) -> Cost:
        """What is to be said of it when it all ends now."""
        return Cost(self.cut, self.guesses > 0)

    def instead(self, of: Charge, now: Charge) -> Charge:
        """This sum with one of its parts replaced."""
        return Charge(
            self.likely - of.likely + now.likely,
            self.most - of.most + now.most,
            self.cut - of.cut + now.cut,
            self.input_tokens - of.input_tokens + now.input_tokens,
            self.output_tokens - of.output_tokens + now.output_tokens,
            self.guesses - of.guesses + now.guesses,
        )


class Meter:
    """The money of one session at its door: the proxy's thread counts, the session's asks.

    Args:
        prices: what tokens cost.
        most_usd: when that much has been spent, nothing more is asked; 0 for no limit.
    """

    def __init__(self, prices: Prices = Prices(), most_usd: float = 0.0) -> None:  # noqa: B008 - frozen
        self.prices, self._most_usd = prices, most_usd
        self._sum = Charge()
        self._lock = threading.Lock()
        self._refused = self._closed = False

    @property
    def likely_usd(self) -> float:
        """What the session has likely cost so far, the answers that are under way included."""
        return self._sum.likely

    @property
    def exhausted(self) -> bool:
        """Whether it went over its limit, or asked for more when nothing was left."""
        return self._refused or 0 < self._most_usd < self._sum.likely

    def check_rest(self) -> None:
        """See that something is left to be asked for.

        Raises:
            ModelRefusedError: 402 when it is not, 403 when the session is over.
        """
        if self._closed:
            raise ModelRefusedError(403, "this session is over")
        if 0 < self._most_usd <= self._sum.likely:
            self._refused = True
            raise self.refusal()

    def admit(self, charge: Charge) -> None:
        """Count a request that is about to be let go.

        Raises:
            ModelRefusedError: as `check_rest`, and 503 when those under way may cost all that is left.
        """
        with self._lock:
            self.check_rest()
            if 0 < self._most_usd <= self._sum.most:
                said = "what else this session has asked may cost all that is left of MAX_COST_USD; ask again after it"
                raise ModelRefusedError(503, said)
            self._sum = self._sum.instead(Charge(), charge)

    def change(self, before: Charge, now: Charge) -> None:
        """Count a request anew."""
        with self._lock:
            self._sum = self._sum.instead(before, now)

    def close(self) -> Charge:
        """Let nothing more be asked; what the session has cost when all that is under way ends now."""
        with self._lock:
            self._closed = True
            return self._sum

    def refusal(self) -> ModelRefusedError:
        """What a session is told that has nothing left."""
        return ModelRefusedError(402, f"this session has used up its {self._most_usd:g} US dollars (MAX_COST_USD)")
