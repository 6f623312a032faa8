"""Runs inside this process: one at a time for each task, a bounded number at once, in order."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

Answer = dict[str, Any]
Holds = Callable[[], bool]
"""Says whether an answer that was given is still true."""

_KEPT_ANSWERS = 256


class Turnstile:
    """Lets `capacity` callers in at once; the others wait and enter in the order in which they came."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Wait for a place, and hold it."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Event()
            self._waiting.append(called)
        called.wait()

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                # The place goes straight to the next in line; nobody can slip in between.
                self._waiting.popleft().set()
            else:
                self._free += 1


class _Turns:
    """A turnstile of one place for each word, kept as long as somebody is inside or waits there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, tuple[Turnstile, int]] = {}

    @contextmanager
    def alone(self, word: str) -> Iterator[None]:
        """Wait until nobody else is inside with this word."""
        turnstile = self._count(word, 1)
        try:
            with turnstile.inside():
                yield
        finally:
            self._count(word, -1)

    def _count(self, word: str, more: int) -> Turnstile:
        with self._lock:
            turnstile, users = self._used.pop(word, (Turnstile(1), 0))
            if users + more:
                self._used[word] = turnstile, users + more
            return turnstile


class InlineRuns:
    """Executes runs in the threads of their callers.

    A request that is asked again while it runs joins that run; one whose answer was worth keeping
    gets that answer, as long as it is true. So a caller that gave up and asks again never starts a
    second session. Another request of the same task waits until that run is over, without a place
    among those that run: it ends as soon as the run before it does, and that a stop ends too.
    """

    def __init__(self, capacity: int) -> None:
        self._turnstile = Turnstile(capacity)
        self._turns = _Turns()
        self._lock = threading.Lock()
        self._running: dict[str, Future[Answer]] = {}
        self._kept: OrderedDict[str, tuple[Answer, Holds]] = OrderedDict()

    def answer(self, key: str, run: Callable[[], tuple[Answer, Holds | None]], *, alone: str = "") -> Answer:
        """The answer of the run with this key.

        Args:
            key: equal for equal requests.
            run: returns the answer and how to see, before it is given again, that it still holds; None
                for an answer that is not to be kept.
            alone: what only one run at a time may have; the key itself when not given.

        Raises:
            BaseException: whatever the run raised, to every caller that joined it; whatever looking
                at a kept answer raised, which keeps it.
        """
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            answer, holds = kept
            if holds():
                return dict(answer)
            self._drop(key, kept)
        with self._lock:
            joined = self._running.get(key)
            mine: Future[Answer] = Future()
            if joined is None:
                self._running[key] = mine
        if joined is not None:
            return dict(joined.result())
        return self._execute(key, run, mine, alone or key)

    def _execute(
        self, key: str, run: Callable[[], tuple[Answer, Holds | None]], mine: Future[Answer], alone: str
    ) -> Answer:
        try:
            with self._turns.alone(alone), self._turnstile.inside():
                answer, holds = run()
        except BaseException as error:
            self._forget(key)
            mine.set_exception(error)
            raise
        if holds is not None:
            self._keep(key, answer, holds)
        self._forget(key)
        mine.set_result(answer)
        return dict(answer)

    def _forget(self, key: str) -> None:
        with self._lock:
            del self._running[key]

    def _drop(self, key: str, kept: tuple[Answer, Holds]) -> None:
        """Forget an answer that no longer holds, unless a newer one is kept meanwhile."""
        with self._lock:
            if self._kept.get(key) is kept:
                del self._kept[key]

    def _keep(self, key: str, answer: Answer, holds: Holds) -> None:
        with self._lock:
            self._kept[key] = answer, holds
            while len(self._kept) > _KEPT_ANSWERS:
                self._kept.popitem(last=False)
