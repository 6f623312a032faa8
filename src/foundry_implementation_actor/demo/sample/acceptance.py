#!/usr/bin/env python3
"""What the peer holds a delivered branch to: the acceptance surface of TASK-7, checked on its files.

Run it with PYTHONPATH=backend in a checkout of the branch.
"""

from __future__ import annotations

from cart.pricing import Line, total

assert total([Line("tea", 3, 500)]) == 1000, "E1: three teas of 500 cents cost 1000 cents"
assert total([Line("tea", 2, 500)]) == 1000, "E2: two teas of 500 cents still cost 1000 cents"
