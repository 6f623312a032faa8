"""What a sandbox costs: the start of a program, and the whole suite of a small house.

    python benchmarks/sandbox.py [--rounds N] [--json]

In one run, round by round, so that all see the same host:

    start      `true` as a plain contained child, in bubblewrap and under Landlock, with the network closed,
               in milliseconds from the order to the end; what is above the plain child is the sandbox's
    suite      60 tests of pytest in a house of 20 modules, outside and inside; inside by outside is the ratio
    check      the quick self-check of a start of the actor, and the whole one
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.caches import cache_environment
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Sandbox, View
from foundry_implementation_actor.sandbox.self_check import full_check, refusal
from foundry_implementation_actor.system.process import run_contained

SANDBOXES: dict[str, Sandbox] = {"plain": NoSandbox(), "bubblewrap": Bubblewrap(), "landlock": Landlock()}
MODULE = "def add(one, other):\n    return one + other\n"
TEST = "from part{n} import add\n" + "".join(
    f"\ndef test_{k}(tmp_path):\n    (tmp_path / 'x').write_text(str(add({k}, 1)))\n"
    f"    assert sum(add(i, {k}) for i in range(60_000)) > 0\n"
    for k in range(3)
)


class House:
    """A tree with one component, and what a session has besides."""

    def __init__(self, base: Path) -> None:
        self.tree, self.root, self.home, self.temporary = (base / name for name in ("tree", "tree/app", "home", "tmp"))
        for folder in (self.root, self.home, self.temporary):
            folder.mkdir(parents=True)
        for number in range(20):
            (self.root / f"part{number}.py").write_text(MODULE)
            (self.root / f"test_part{number}.py").write_text(TEST.format(n=number))
        self.base = base

    def run(self, sandbox: Sandbox, *argv: str) -> float:
        """How long a program takes in a sandbox, in milliseconds; it must end well."""
        environment = {"PATH": os.defpath, "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        command = Command(argv, self.root, environment | cache_environment(self.home), 300)
        view = View((self.root,), self.home, self.temporary, hidden=(self.base,), shown=(self.tree,))
        started = time.perf_counter()
        with sandbox.confine(command, view) as confined:
            done = run_contained(confined)
        taken = time.perf_counter() - started
        assert done.ok, (done.text[-300:], done.errors[-300:])
        return taken * 1000


class Houses:
    """One house for each sandbox: what one leaves behind belongs to another user for the other."""

    def __init__(self, base: Path) -> None:
        self.of = {name: House(base / name) for name in SANDBOXES}

    def rounds(self, number: int, *argv: str) -> dict[str, list[float]]:
        """What a program took in each, round by round, after one round to warm up."""
        taken: dict[str, list[float]] = {name: [] for name in SANDBOXES}
        for _ in range(number + 1):
            for name, sandbox in SANDBOXES.items():
                taken[name].append(self.of[name].run(sandbox, *argv))
        return {name: times[1:] for name, times in taken.items()}


def starts(houses: Houses, number: int) -> dict[str, float]:
    taken = houses.rounds(number, "/bin/true")
    found = {name: statistics.median(times) for name, times in taken.items()}
    return found | {f"{name} above plain": found[name] - found["plain"] for name in found if name != "plain"}


def suites(houses: Houses, number: int) -> dict[str, float]:
    taken = houses.rounds(number, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    found = {name: statistics.median(times) for name, times in taken.items()}
    return found | {f"{name} by plain": found[name] / found["plain"] for name in found if name != "plain"}


def checks() -> dict[str, float]:
    found = {}
    for name, sandbox in SANDBOXES.items():
        if name != "plain":
            for what, work, times in (("quick", refusal, 9), ("whole", full_check, 1)):
                found[f"{name} {what}"] = statistics.median(timed(work, sandbox) for _ in range(times))
    return found


def timed(work: Callable[[Sandbox], object], sandbox: Sandbox) -> float:
    started = time.perf_counter()
    work(sandbox)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sandbox-cost-") as folder:
        houses = Houses(Path(folder).resolve())
        found = {
            "start": starts(houses, asked.rounds),
            "suite": suites(houses, max(3, asked.rounds // 4)),
            "check": checks(),
        }
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    for part, numbers in found.items():
        for name, number in numbers.items():
            print(f"{part:8} {name:28} {number:9.2f}" + ("" if name.endswith("by plain") else " ms"))


if __name__ == "__main__":
    main()
