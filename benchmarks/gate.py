"""What a verdict of the landing gate costs: a whole Python verdict, in a house of 13 and of 1,014 modules.

    python benchmarks/gate.py [--rounds N] [--json]

In one run, round by round, so that all see the same host:

    cold       `gate implement` as a process of its own: all judges, and the landing
    warm       the same asked of a running `mcp` by the official client, over its pipes
    syntax     a body that the parser refuses, asked of `mcp`; `shape` likewise
    pytest     a bare `pytest` on the same test
    ty         a bare analyser run on the same file

and what `mcp` holds in memory when it has judged: its own process, and what it keeps ready (as the kernel
divides what is shared).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from foundry_implementation_actor.demo import gate_story
from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.answer import answer
from foundry_implementation_actor.gate.ask import Ask, Whole
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.system.supervise import descendants

BODIES = Path(gate_story.__file__).with_name("sample") / "gate" / "python"
CART, CART_TEST = Target("shop", "Cart"), Target("shop", "TestCart")
OTHER = '"""One of many."""\n\n\nclass {name}:\n    def size(self) -> int:\n        return {number}\n'
SIZES = (13, 1_014)
PARTS = ("cold", "warm", "syntax", "shape", "pytest", "ty")


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
    """Run a command with its modules compiled once, as an installed package has them."""
    compiled = str(root.with_name("compiled"))
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(argv, cwd=root, input=content, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def cold_round(root: Path, number: int) -> dict[str, float]:
    scripts = Path(sysconfig.get_path("scripts"))
    command = [sys.executable, "-m", "foundry_implementation_actor.cli", "gate", "implement", "shop", "Cart"]
    ty = [str(scripts / "ty"), "check", "--no-progress", "--exit-zero", "src/plugins/shop/cart.py"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plugins/shop/test_cart.py"]
    return {
        "cold": timed(lambda: run([*command, "--content", "-", "--json"], root, body(2 * number))),
        "pytest": timed(lambda: run(pytest, root)),
        "ty": timed(lambda: run(ty, root)),
    }


async def warm_round(client: Client, number: int) -> dict[str, float]:
    return {
        "warm": await asked(client, body(2 * number + 1), lands=True),
        "syntax": await asked(client, b"class Cart(:\n", lands=False),
        "shape": await asked(client, b"class Card:\n    x = 1\n", lands=False),
    }


async def asked(client: Client, content: bytes, *, lands: bool) -> float:
    started = time.perf_counter()
    given = await client.call_tool("implement", {"plugin": "shop", "class": "Cart", "content": content.decode()})
    assert given.structured_content is not None, given
    assert given.structured_content["ok"] is lands, given
    return (time.perf_counter() - started) * 1000


async def measure(root: Path, rounds: int) -> dict[str, Any]:
    """The median of each part, and the memory of `mcp` in MiB: its own process, and those that it keeps."""
    words = ["-m", "foundry_implementation_actor.cli", "mcp", "--app", str(root)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        cold_round(root, -1)
        await warm_round(client, -1)
        taken = [cold_round(root, number) | await warm_round(client, number) for number in range(rounds)]
        own, *kept = [memory(pid) for pid in sorted(descendants(os.getpid()))]
    found = {part: statistics.median(each[part] for each in taken) for part in PARTS}
    return found | {"own_mib": own, "kept_mib": sum(kept)}


def memory(pid: int) -> float:
    """What a process holds, in MiB; of what it shares with others, its part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="gate-benchmark-") as folder:
        for modules in SIZES:
            gate = house(Path(folder).resolve() / str(modules), modules)
            found[str(modules)] = anyio.run(measure, gate.root, options.rounds)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'ms, median':<12}" + "".join(f"{part:>10}" for part in PARTS) + "   memory of mcp, MiB")
    for size, taken in found.items():
        held = f"   {taken['own_mib']:.0f} + {taken['kept_mib']:.0f} kept ready"
        print(f"{size:<12}" + "".join(f"{taken[part]:>10.0f}" for part in PARTS) + held)


if __name__ == "__main__":
    main()
