"""Killed at any moment, a landing leaves whole old or whole new bodies, and `recover` leaves nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.landing import alone, count, land, recover
from foundry_implementation_actor.gate.staging import Declared, Staging
from support.landing import NEW, OLD, candidates, dying_at, facts, killed, lay, left_over, live

ONE = {"src/a.py": NEW["src/a.py"]}
THREE = {f"src/c{number}.py": b"class C: new = %d\n" % number * 500 for number in range(3)}
OLDER = dict.fromkeys(THREE, b"class C: old = 1\n")
LANDINGS = {"one": (OLD, ONE), "two": (OLD, NEW), "three": (OLDER, THREE)}
RANDOM_KILLS = 60


def landing(root: Path, old: dict[str, bytes], new: dict[str, bytes], die: Callable[[str], None]) -> None:
    with alone(root):
        land(root, candidates(new, old), die)


def nothing(_: str) -> None:
    return


def settle(root: Path, old: dict[str, bytes], new: dict[str, bytes]) -> bool:
    """Recover, see that all is whole, and say whether the new bodies are there."""
    torn = {name: content for name, content in live(root).items() if not name.rpartition("/")[2].startswith(".")}
    assert all(content in {old[name], new.get(name)} for name, content in torn.items())
    recover(root)
    assert live(root) in (old, old | new)
    assert left_over(root) == []
    assert recover(root) == []
    return live(root) != old


@pytest.mark.parametrize("which", LANDINGS)
def test_killed_at_every_step_all_files_are_old_or_all_are_new(tmp_path: Path, which: str) -> None:
    old, new = LANDINGS[which]
    seen, number = set(), 1
    while True:
        root = lay(tmp_path / str(number), old)
        times = {name: facts(root / name) for name in old}
        if not killed(partial(landing, root, old, new, dying_at(number))):
            break
        landed = settle(root, old, new)
        seen.add(landed)
        assert landed or {name: facts(root / name) for name in old} == times
        number += 1
    assert number > 7
    assert seen == {False, True}


@pytest.mark.parametrize("which", LANDINGS)
def test_killed_at_random_moments_all_files_are_old_or_all_are_new(tmp_path: Path, which: str) -> None:
    old, new = LANDINGS[which]
    chance = random.Random(f"kill {which}")
    began = time.monotonic()
    landing(lay(tmp_path / "measured", old), old, new, nothing)
    whole = 2 * (time.monotonic() - began)
    root, cut = tmp_path / "app", 0
    for _ in range(RANDOM_KILLS):
        lay(root, old)
        cut += killed(lambda: landing(root, old, new, nothing), chance.uniform(0, whole))
        settle(root, old, new)
    assert cut > RANDOM_KILLS // 10


def test_the_next_landing_undoes_what_a_killed_one_left(tmp_path: Path) -> None:
    root = lay(tmp_path)
    assert killed(lambda: landing(root, OLD, NEW, dying_at(8)))
    assert left_over(root) != []
    landing(root, OLD, NEW, nothing)
    assert live(root) == NEW
    assert left_over(root) == []
    assert count(root) == 2


def test_recover_leaves_what_somebody_else_wrote_meanwhile_and_says_so(tmp_path: Path) -> None:
    root = lay(tmp_path)
    steps: list[str] = []
    landing(lay(tmp_path / "steps"), OLD, NEW, steps.append)
    assert killed(lambda: landing(root, OLD, NEW, dying_at(steps.index("renamed") + 1)))
    (root / "src/a.py").write_bytes(b"by hand")
    said = recover(root)
    assert live(root) == OLD | {"src/a.py": b"by hand"}
    assert any("src/a.py: left as it is" in line for line in said)
    assert left_over(root) == []


def test_recover_goes_on_when_a_folder_is_gone(tmp_path: Path) -> None:
    root = lay(tmp_path)
    assert killed(lambda: landing(root, OLD, NEW, dying_at(5)))
    (root / "src/deep").rename(tmp_path / "elsewhere")
    assert any("its folder is gone" in line for line in recover(root))
    assert recover(root) == []


def test_staging_killed_at_random_moments_holds_whole_sections_only(tmp_path: Path) -> None:
    target, pieces = Target("plugin", "A"), [b"1" * 5_000, b"2" * 5_000, b"3" * 5_000]
    chance = random.Random("kill staging")

    def stage() -> None:
        staging = Staging(tmp_path)
        staging.start(target, pieces[0])
        for number, piece in enumerate(pieces[1:], 2):
            staging.append(target, piece, Declared(section=number))

    began = time.monotonic()
    stage()
    whole = 2 * (time.monotonic() - began)
    allowed = [b"".join(pieces[:size]) for size in (1, 2, 3)]
    cut = 0
    for _ in range(60):
        cut += killed(stage, chance.uniform(0, whole))
        assert Staging(tmp_path).assembled(target) in [None, *allowed]
        Staging(tmp_path).recover()
        assert left_over(tmp_path) == []
    assert cut > 5
