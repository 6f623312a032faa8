"""Taking an order for widgets."""

from __future__ import annotations

from typing import Any


def place(order: dict[str, Any]) -> dict[str, Any]:
    """Take an order of lines, each with a quantity and the cents of one, and say what it costs."""
    lines = order["lines"]
    return {"accepted": True, "cents": sum(line["quantity"] * line["unit_cents"] for line in lines)}
