"""What a cart costs. Money is whole cents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One article in a cart: how many of it, and the price of one in cents."""

    article: str
    quantity: int
    unit_cents: int


def total(lines: Iterable[Line]) -> int:
    """The price of all lines together, in cents."""
    return sum(line.quantity * line.unit_cents for line in lines)
