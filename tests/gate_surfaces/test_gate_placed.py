"""On a host without namespaces a body stands at its live path while it is judged; the gate is right there too."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate, Target
from foundry_implementation_actor.gate.answer import answer
from foundry_implementation_actor.gate.ask import Ask, Whole
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.outcome import Text
from foundry_implementation_actor.gate.placement import Placement
from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST, WAITING, python_app
from support.landing import facts, left_over

CART, CART_TEST = Target("shop", "Cart"), Target("shop", "TestCart")


@contextlib.contextmanager
def placed(app: App, candidates: Sequence[Candidate], *, holds: bool = False) -> Iterator[Run]:
    files = {candidate.place.path: candidate.content for candidate in candidates}
    yield Placement(app, files, "not isolated (as this test says)", holds=holds)


def land(root: Path, target: Target, content: str, *, holds: bool = False) -> dict[str, Any]:
    gate = Gate(House.open(root), isolated=partial(placed, holds=holds))
    return answer(gate.implement(Ask(target, Whole(content.encode()))))


@pytest.mark.parametrize("holds", [False, True], ids=["unheld", "held"])
def test_a_fake_is_refused_and_the_original_is_back_as_it_was(tmp_path: Path, *, holds: bool) -> None:
    root = python_app(tmp_path / "app")
    assert land(root, CART_TEST, TEST, holds=holds)["ok"]
    before = facts(root / SCAFFOLD)
    assert land(root, CART, FAKE, holds=holds)["ok"] is False
    assert facts(root / SCAFFOLD) == before
    landed = land(root, CART, HONEST, holds=holds)
    assert landed["ok"]
    assert "not isolated" in landed["verified"] + str(landed["notes"])
    assert left_over(root) == []


def test_two_at_once_and_a_reader_never_meet_a_body_that_nobody_passed(tmp_path: Path) -> None:
    root = python_app(tmp_path / "app")
    land(root, CART_TEST, TEST)
    scaffold = (root / SCAFFOLD).read_text()
    gate = Gate(House.open(root), isolated=placed)
    with ThreadPoolExecutor(3) as callers:
        asks = [callers.submit(land, root, CART, content) for content in (FAKE, HONEST)]
        seen = set()
        while not all(one.done() for one in asks):
            text = gate.read(CART)
            assert isinstance(text, Text)
            seen.add(text.content.decode())
        said = [one.result() for one in asks]
    assert seen <= {scaffold, HONEST}
    assert ([one["ok"] for one in said], (root / SCAFFOLD).read_text()) == ([False, True], HONEST)
    assert (root / OWN_TEST).read_text() == TEST
    assert left_over(root) == []


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_ended_takes_the_body_out_of_its_place(tmp_path: Path, ending: signal.Signals) -> None:
    root = python_app(tmp_path / "app")
    # The scaffold is asked too, in any order: only the body is waited for.
    (root / OWN_TEST).write_text(WAITING.replace("while not", 'while hasattr(Cart, "total") and not'))
    before = facts(root / SCAFFOLD)
    code = "from foundry_implementation_actor.cli.main import main; raise SystemExit(main())"
    words = ("gate", "implement", "shop", "Cart", "--content", "-", "--app", str(root))
    with subprocess.Popen(
        (sys.executable, "-c", code, *words), env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as command:  # fmt: skip
        assert command.stdin is not None
        command.stdin.write(HONEST)
        command.stdin.close()
        command.stdin = None
        while (root / SCAFFOLD).read_text() != HONEST:
            assert command.poll() is None
        command.send_signal(ending)
        command.communicate(timeout=30)
    assert (command.returncode, facts(root / SCAFFOLD), left_over(root)) == (130, before, [])
