"""What the sessions of one run may spend together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.domain.run import Budget, Cause, SessionEnd
from foundry_implementation_actor.session.budget import remaining, used_up
from support.sessions import BUDGET

BUDGETS = st.builds(
    lambda turns, clock_s, cost_usd: replace(BUDGET, turns=turns, clock_s=clock_s, cost_usd=cost_usd),
    st.integers(1, 60), st.integers(1, 60), st.just(0.0) | st.floats(0.01, 2),
)  # fmt: skip
SPENT = st.builds(
    lambda turns, seconds, cost_usd: SessionEnd(Cause.FINISHED, turns=turns, seconds=seconds, cost_usd=cost_usd),
    st.integers(0, 70), st.floats(0, 70), st.floats(0, 3),
)  # fmt: skip


@given(BUDGETS, SPENT)
def test_what_is_left_is_a_budget_that_a_session_can_begin_with_and_with_what_was_spent_never_above_the_whole(
    budget: Budget, spent: SessionEnd
) -> None:
    if used_up(budget, spent):
        return
    left = remaining(budget, spent)
    assert 1 <= left.turns <= budget.turns - spent.turns
    assert 1 <= left.clock_s <= budget.clock_s - spent.seconds
    assert bool(left.cost_usd) == bool(budget.cost_usd)
    assert not left.cost_usd or 0.01 <= left.cost_usd == budget.cost_usd - spent.cost_usd


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (SessionEnd(Cause.FINISHED, turns=59, seconds=59.0, cost_usd=1.99), ""),
        (SessionEnd(Cause.FINISHED, turns=60), "60 turns (MAX_TURNS)"),
        (SessionEnd(Cause.FINISHED, seconds=59.1), "60 seconds (SESSION_TIMEOUT_S)"),
        (SessionEnd(Cause.FINISHED, cost_usd=1.995), "2 US dollars (MAX_COST_USD)"),
    ],
)
def test_what_is_used_up_is_named_with_its_variable(spent: SessionEnd, said: str) -> None:
    assert used_up(replace(BUDGET, cost_usd=2.0), spent) == said


def test_a_run_without_a_limit_of_money_has_none_for_its_further_sessions() -> None:
    dear = SessionEnd(Cause.FINISHED, cost_usd=1_000.0)
    assert (used_up(BUDGET, dear), remaining(BUDGET, dear).cost_usd) == ("", 0.0)


def test_the_ends_of_several_sessions_are_the_last_ones_with_the_sums_of_all() -> None:
    first = SessionEnd(Cause.FINISHED, "one", "", 2, 0.5, 10, 20, cost_estimated=True, seconds=1.5)
    second = SessionEnd(Cause.TURNS, "two", "why", 3, 0.25, 1, 2, seconds=2.0)
    assert second.after(first) == SessionEnd(Cause.TURNS, "one\n\ntwo", "why", 5, 0.75, 11, 22, True, 3.5)
    assert second.after(SessionEnd(Cause.FINISHED)) == second
