"""Small apps to land bodies in, and the bodies of the demo: a test, a fake, and the real thing."""

from __future__ import annotations

from pathlib import Path

from foundry_implementation_actor.demo import gate_story
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House

_BODIES = Path(gate_story.__file__).with_name("sample") / "gate" / "python"
TEST, FAKE, HONEST = ((_BODIES / f"{name}.txt").read_text() for name in ("test", "fake", "honest"))

WAITING = """\
import time
from pathlib import Path

from plugins.shop.cart import Cart


class TestCart:
    def test_it_is_slow(self) -> None:
        while not Path(__file__).parents[3].joinpath("go").exists():
            time.sleep(0.01)
        assert Cart().total() == 0
"""
"""A test of `Cart` that waits until there is a file `go` at the app's root."""

SCAFFOLD = "src/plugins/shop/cart.py"
OWN_TEST = "tests/plugins/shop/test_cart.py"


def python_app(root: Path, *, made: bool = True) -> Path:
    """An app of one plugin, `shop`, with the scaffold of the class `Cart` and of its test."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "0"\n')
    gate = Gate(House.open(root))
    for kind, name in (("plugin", ""), ("service", "Cart"), ("test", "Cart")) if made else ():
        gate.make(kind, "shop", name)
    return root


def sources(root: Path) -> dict[str, bytes]:
    """Every file of the app but the gate's own, by its path."""
    found = [path for path in root.rglob("*") if path.is_file() and ".foundry" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}
