"""A small Python app to judge bodies in: the sample house, written out where a test wants it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.judges.bodies import body_judges

SAMPLES = Path(__file__).with_name("samples")
SERVICE = "src/plugins/orders/service.py"
SERVICE_TEST = "tests/plugins/orders/test_service.py"
DEFECTIVE = sorted((SAMPLES / "candidates/defective").iterdir())
CLEAN = sorted((SAMPLES / "candidates/clean").iterdir())
TRAPS = sorted((SAMPLES / "traps").iterdir())

# What some clean bodies import: installed for their author, so made for them here.
_INSTALLED = {
    "xmltodict.py": "def parse(xml):\n    return {}\n\n\ndef unparse(tree):\n    return ''\n",
    "docopt.py": "def docopt(doc, argv=None):\n    return {}\n",
}


@dataclass
class PythonHouse:
    """An app and the place of its service; a test changes either before it judges."""

    root: Path
    app: App
    place: Place

    def judge(self, judge: str, body: bytes | str, **fields: Any) -> Verdict:
        """One judge's verdict on a body for the service; `fields` replace those of the candidate."""
        content = body.encode() if isinstance(body, str) else body
        original = (self.root / self.place.path).read_bytes()
        candidate = replace(Candidate(self.place, content, original), **fields)
        (one,) = (one for one in body_judges("python") if one.name == judge)
        with isolated(self.app, [candidate]) as run:
            return one.judge(self.app, candidate, run)

    def write(self, path: str, text: str) -> Path:
        """Write a file of the app."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def at(self, plugin: str, class_: str, module: str, *, own_test: str = "") -> Place:
        """Make another class of the app the one that is judged."""
        path = f"src/{module.replace('.', '/')}.py"
        self.place = Place(Target(plugin, class_), path, module, is_test=False, own_test=own_test)
        return self.place


def python_house(root: Path) -> PythonHouse:
    """The sample house below `root`, with the interpreter that runs the tests."""
    for sample in (SAMPLES / "house").rglob("*"):
        if sample.is_file():
            copy = root / str(sample.relative_to(SAMPLES / "house")).removesuffix(".txt")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(sample.read_bytes())
    for name, text in _INSTALLED.items():
        (root / "src" / name).write_text(text)
    app = App(
        root=root.resolve(),
        language="python",
        source="src/plugins/orders",
        tests="tests/plugins/orders",
        interpreter=(sys.executable,),
        environment={"PATH": os.defpath},
    )
    target = Target("orders", "OrderService")
    place = Place(target, SERVICE, "plugins.orders.service", is_test=False, own_test=SERVICE_TEST)
    return PythonHouse(app.root, app, place)
