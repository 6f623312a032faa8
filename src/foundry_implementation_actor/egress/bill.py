"""What one request to the model costs, read off it and its answer while both pass by.

An answer is counted by the `usage` that it states. One that cannot be read to its end (it breaks off, is compressed
although nobody asked for that, has no `usage`) counts as much as it can have cost: else a session could ask, and
leave before the sum is told. A stream that the actor ends counts by what was written until then. Both are guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.price import SEARCH_USD, Price, Usage, count
from foundry_implementation_actor.egress.exchange import Onlooker
from foundry_implementation_actor.egress.http import ModelRefusedError, Response
from foundry_implementation_actor.egress.meter import Charge, Meter
from foundry_implementation_actor.egress.outline import Outline
from foundry_implementation_actor.egress.told import Told, reader

# English and code have about four bytes a token: what is written counts about right, what is sent too much.
_WRITTEN_BYTES_A_TOKEN, _SENT_BYTES_A_TOKEN = 4, 3
# How many bytes of a stream are written between two counts.
_STRIDE = 1024
# What makes an answer dearer than its price in the table; the CLI asks for neither.
_DEARER = ("speed", "inference_geo")


class _Asked(NamedTuple):
    """Of a request: the model that it names, and the most output that it takes, in tokens."""

    model: str = ""
    output: int = 0


class Bill(Onlooker):
    """One request's bill, kept up to date at the session's meter.

    Raises:
        ModelRefusedError: as `Meter.check_rest`.
    """

    def __init__(self, meter: Meter) -> None:
        meter.check_rest()
        self._meter = meter
        self._outline = Outline(1)
        self._sent = 0
        self._asked = _Asked()
        self._told = Told()
        self._read = reader((), self._told)
        self._charge = Charge()
        self._is_free = self._is_cut = False
        self._mark = (Usage(), False, False, 0)
        self._price: tuple[str, Price, bool] | None = None

    def sent(self, content: bytes) -> None:
        """A piece of the request's body."""
        self._sent += len(content)
        self._outline.feed(content)

    def complete(self) -> None:
        """The request is whole, but for its last piece: without that one it costs nothing.

        Raises:
            ModelRefusedError: 400 when what it may cost cannot be read, 403 when it asks for what has a price of its
                own, or as `Meter.admit`.
        """
        self._asked = _asked(self._outline.value() or {})
        charge = self._now()
        self._meter.admit(charge)
        self._charge = charge

    def answered(self, response: Response) -> None:
        """The head of the answer: an error costs nothing."""
        self._is_free = response.status >= 300
        self._read = reader(response.headers, self._told)
        self._change(self._now())

    def heard(self, content: bytes) -> None:
        """A piece of the answer's content, before it is passed on.

        Raises:
            ModelRefusedError: 402 when it leads over the limit.
        """
        self._read(content)
        told = self._told
        mark = (told.usage, told.knows_input, told.whole, told.written // _STRIDE)
        if mark != self._mark:
            self._mark = mark
            self._change(self._now())
        if self._meter.exhausted and not told.whole:
            self._is_cut = True
            raise self._meter.refusal()

    def end(self) -> None:
        """There is no more of it."""
        now = self._charge
        if self._is_cut:
            self._change(now._replace(likely=now.cut, most=now.cut))
        elif now.guesses and not self._told.whole:
            most = self._most()
            self._change(self._priced(most, most, most))

    def _change(self, now: Charge) -> None:
        self._meter.change(self._charge, now)
        self._charge = now

    def _now(self) -> Charge:
        told = self._told
        if self._is_free:
            return Charge()
        if told.whole:
            return self._priced(told.usage, told.usage, told.usage)
        likely = told.usage.larger(Usage(output=told.written // _WRITTEN_BYTES_A_TOKEN))
        most = self._most()
        return self._priced(likely, most, likely if told.knows_input else most)

    def _most(self) -> Usage:
        """The most that an answer can state which was not read to its end; the dearest input is kept for an hour."""
        known = self._told.usage if self._told.knows_input else Usage(cache_write_1h=self._sent // _SENT_BYTES_A_TOKEN)
        return known.larger(Usage(output=self._asked.output))

    def _priced(self, likely: Usage, most: Usage, cut: Usage) -> Charge:
        model = self._told.model or self._asked.model
        if self._price is None or self._price[0] != model:
            self._price = (model, *self._meter.prices.of(model))
        _, price, is_known = self._price
        searches = self._told.searches * SEARCH_USD
        usd, most_usd, cut_usd = (price.cost(usage) + searches for usage in (likely, most, cut))
        return Charge(usd, most_usd, cut_usd, cut.all_input, cut.output, int(not (self._told.whole and is_known)))


def _asked(given: Mapping[str, Any]) -> _Asked:
    model, output = given.get("model"), given.get("max_tokens")
    if not isinstance(model, str) or not isinstance(output, int) or output < 0:
        said = "a request to the model is one JSON object that names `model` and `max_tokens`, and no key twice"
        raise ModelRefusedError(400, said)
    dearer = [key for key in _DEARER if given.get(key) is not None]
    if dearer:
        raise ModelRefusedError(403, f"a session may not ask for `{dearer[0]}`, which has a price of its own")
    return _Asked(model, count(output))
