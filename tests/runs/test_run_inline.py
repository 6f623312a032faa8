"""Who waits, who joins and what is kept, with real threads and no sleeping."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from foundry_implementation_actor.runs.inline import Holds, InlineRuns, Turnstile

Answer = dict[str, Any]
Outcome = tuple[Answer, Holds | None]


def true() -> bool:
    return True


def started(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def waiting_in(turnstile: Turnstile, count: int) -> None:
    """Wait until so many callers stand in line; the line is the one thing to look at."""
    limit = threading.Event()
    for _ in range(10_000):
        if len(turnstile._waiting) >= count:
            return
        limit.wait(0.001)
    raise AssertionError(f"{len(turnstile._waiting)} of {count} wait")


def test_those_who_wait_enter_in_the_order_in_which_they_came() -> None:
    turnstile, entered = Turnstile(1), list[int]()

    def come(number: int) -> None:
        with turnstile.inside():
            entered.append(number)

    threads = []
    with turnstile.inside():
        for number in range(8):
            threads.append(started(partial(come, number)))
            waiting_in(turnstile, number + 1)
    for thread in threads:
        thread.join()
    assert entered == list(range(8))


def test_nobody_slips_in_between_one_who_leaves_and_one_who_waits() -> None:
    turnstile, entered = Turnstile(1), list[str]()
    released = threading.Event()

    def wait_in_line() -> None:
        with turnstile.inside():
            entered.append("waiter")
            released.wait(30)

    with turnstile.inside():
        waiter = started(wait_in_line)
        waiting_in(turnstile, 1)
    late = started(lambda: late_comes(turnstile, entered))
    waiting_in(turnstile, 1)
    released.set()
    waiter.join()
    late.join()
    assert entered == ["waiter", "late"]


def late_comes(turnstile: Turnstile, entered: list[str]) -> None:
    with turnstile.inside():
        entered.append("late")


def test_a_place_is_given_back_by_one_who_leaves_with_an_error() -> None:
    turnstile = Turnstile(1)
    with pytest.raises(ValueError, match="x"), turnstile.inside():
        raise ValueError("x")
    with turnstile.inside():
        pass


def test_never_more_runs_at_once_than_allowed_and_all_of_twenty_callers_get_their_answer() -> None:
    runs, lock = InlineRuns(3), threading.Lock()
    inside, most = 0, 0
    full = threading.Barrier(3, timeout=30)

    def work(number: int) -> Outcome:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        if number < 3:
            full.wait()  # passes only when three are inside together
        with lock:
            inside -= 1
        return {"number": number}, None

    with ThreadPoolExecutor(20) as pool:
        jobs = [pool.submit(runs.answer, str(n), partial(work, n)) for n in range(20)]
        assert [job.result(30) for job in jobs] == [{"number": n} for n in range(20)]
    assert most == 3


def test_callers_of_one_run_join_it_and_each_gets_a_dict_of_its_own() -> None:
    runs, calls, go = InlineRuns(4), list[int](), threading.Event()

    def work() -> Outcome:
        calls.append(1)
        go.wait(30)
        return {"ok": True}, true

    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(runs.answer, "key", work) for _ in range(5)]
        go.set()
        answers = [job.result(30) for job in jobs]
    answers[0]["ok"] = "changed"
    assert answers[1:] == [{"ok": True}] * 4
    assert runs.answer("key", work) == {"ok": True}
    assert calls == [1]


def test_an_answer_that_is_not_worth_keeping_is_worked_for_again() -> None:
    runs, calls = InlineRuns(1), list[int]()

    def work() -> Outcome:
        calls.append(1)
        return {"n": len(calls)}, None

    assert [runs.answer("key", work)["n"] for _ in range(3)] == [1, 2, 3]


def test_an_error_reaches_everybody_who_joined_and_is_not_kept() -> None:
    runs, go = InlineRuns(2), threading.Event()

    def broken() -> Outcome:
        go.wait(30)
        raise RuntimeError("broken")

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(runs.answer, "key", broken) for _ in range(3)]
        go.set()
        assert [str(job.exception(30)) for job in jobs] == ["broken"] * 3
    assert runs.answer("key", lambda: ({"ok": True}, true)) == {"ok": True}


def test_only_the_latest_answers_are_kept() -> None:
    runs, calls = InlineRuns(1), list[str]()

    def work(key: str) -> Outcome:
        calls.append(key)
        return {}, true

    def ask(key: str) -> None:
        runs.answer(key, partial(work, key))

    for number in range(300):
        ask(str(number))
    ask("299")
    ask("0")
    assert calls[300:] == ["0"]


def test_a_run_that_waits_for_another_of_its_task_takes_no_place_and_comes_next() -> None:
    runs, ran = InlineRuns(2), list[str]()
    begun, go = threading.Event(), threading.Event()

    def work(key: str) -> Outcome:
        ran.append(f"{key} begins")
        if key == "first":
            begun.set()
            go.wait(30)
        ran.append(f"{key} ends")
        return {}, None

    def ask(key: str, task: str) -> None:
        runs.answer(key, partial(work, key), alone=task)

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(ask, "first", "T1")]
        assert begun.wait(30)
        turnstile, _ = runs._turns._used["T1"]
        jobs.append(pool.submit(ask, "second", "T1"))
        waiting_in(turnstile, 1)
        pool.submit(ask, "other", "T2").result(30)
        go.set()
        for job in jobs:
            job.result(30)
    assert ran == ["first begins", "other begins", "other ends", "first ends", "second begins", "second ends"]
    assert not runs._turns._used
