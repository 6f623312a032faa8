"""What a verdict of the landing gate costs: a whole Python verdict, in a house of 13 and of 1,014 modules.

    python benchmarks/gate.py [--rounds N] [--json]

In one run, round by round, so that all see the same host:

    command    `gate implement` as a process of its own, the test and the landing included
    server     the same in a process that is up, as `mcp` is
    syntax     a body that the parser refuses, in a process that is up; `shape` likewise
    pytest     a bare `pytest` on the same test
    ty         a bare analyser run on the same file
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foundry_implementation_actor.demo import gate_story
from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.answer import answer
from foundry_implementation_actor.gate.ask import Ask, Whole
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House

BODIES = Path(gate_story.__file__).with_name("sample") / "gate" / "python"
CART, CART_TEST = Target("shop", "Cart"), Target("shop", "TestCart")
OTHER = '"""One of many."""\n\n\nclass {name}:\n    def size(self) -> int:\n        return {number}\n'
SIZES = (13, 1_014)
PARTS = ("command", "server", "syntax", "shape", "pytest", "ty")


def house(root: Path, modules: int) -> Gate:
    """A house of that many modules, the class to land and its test among them."""
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "0"\n')
    gate = Gate(House.open(root))
    for kind, name in (("plugin", ""), ("service", "Cart"), ("test", "Cart")):
        gate.make(kind, "shop", name)
    for number in range(modules - len(list(root.rglob("*.py")))):
        folder = root / f"src/plugins/other{number % 20}"
        folder.mkdir(exist_ok=True)
        (folder / f"part{number}.py").write_text(OTHER.format(name=f"Part{number}", number=number))
    land(gate, CART_TEST, (BODIES / "test.txt").read_bytes())
    return gate


def land(gate: Gate, target: Target, content: bytes, *, lands: bool = True) -> None:
    given = answer(gate.implement(Ask(target, Whole(content))))
    assert given["ok"] is lands, given


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def body(number: int) -> bytes:
    """The real body, different each time, so that each landing writes."""
    return (BODIES / "honest.txt").read_bytes() + b"# %d\n" % number


def run(argv: list[str], root: Path, content: bytes = b"") -> None:
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, cwd=root, input=content, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def one_round(gate: Gate, number: int) -> dict[str, float]:
    root, scripts = gate.root, Path(sysconfig.get_path("scripts"))
    command = [sys.executable, "-m", "foundry_implementation_actor.cli", "gate", "implement", "shop", "Cart"]
    ty = [str(scripts / "ty"), "check", "--no-progress", "--exit-zero", "src/plugins/shop/cart.py"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plugins/shop/test_cart.py"]
    return {
        "command": timed(lambda: run([*command, "--content", "-", "--json"], root, body(2 * number))),
        "server": timed(lambda: land(gate, CART, body(2 * number + 1))),
        "syntax": timed(lambda: land(gate, CART, b"class Cart(:\n", lands=False)),
        "shape": timed(lambda: land(gate, CART, b"class Card:\n    x = 1\n", lands=False)),
        "pytest": timed(lambda: run(pytest, root)),
        "ty": timed(lambda: run(ty, root)),
    }


def measure(rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="gate-benchmark-") as folder:
        for modules in SIZES:
            gate = house(Path(folder).resolve() / str(modules), modules)
            one_round(gate, -1)
            taken = [one_round(gate, number) for number in range(rounds)]
            found[str(modules)] = {part: statistics.median(each[part] for each in taken) for part in PARTS}
    found["server_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.rounds)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{'ms, median':<12}" + "".join(f"{part:>10}" for part in PARTS))
    for modules in SIZES:
        print(f"{modules:<12}" + "".join(f"{found[str(modules)][part]:>10.0f}" for part in PARTS))
    print(f"memory of the process that is up: {found['server_mib']:.0f} MiB")


if __name__ == "__main__":
    main()
