"""The prices of carts, as the shop states them."""

from __future__ import annotations

from unittest import TestCase

from cart.pricing import Line, total


class TestTotal(TestCase):
    def test_an_empty_cart_costs_nothing(self) -> None:
        assert total([]) == 0

    def test_a_cart_costs_what_its_lines_cost(self) -> None:
        assert total([Line("tea", 2, 450), Line("cup", 1, 900)]) == 1800
