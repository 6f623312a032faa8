"""How many bodies the PHP judges refuse, rightly and wrongly; `figures.json` is what docs/gate.md states.

The samples are judged one by one in `test_php_samples`. The `further` bodies were written after the
judges were done, by the hand that wrote the judges.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from php_house import SAMPLES, PhpHouse, needs_php, php_house

from foundry_implementation_actor.domain.verdict import Outcome

pytestmark = needs_php

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text())
FURTHER = SAMPLES / "further"
JUDGES = ("strict-types", "shape", "linkage")


def test_the_figures_of_the_further_bodies_are_what_the_judges_do(tmp_path: Path) -> None:
    house = php_house(tmp_path / "app")
    shutil.copytree(FURTHER / "house", house.root, dirs_exist_ok=True)
    outcomes = {path.stem: outcome(house, path) for path in sorted(FURTHER.glob("*.php"))}
    assert figures(outcomes) == FIGURES["further"]


def outcome(house: PhpHouse, path: Path) -> Outcome:
    said = list(house.judge(house.candidate(path.read_bytes()), *JUDGES).values())
    assert Outcome.UNJUDGED not in {verdict.outcome for verdict in said}, said
    return said[-1].outcome


def figures(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    defective = [name for name in outcomes if name.startswith("d")]
    clean = [name for name in outcomes if name.startswith("c")]
    missed = [name for name in defective if outcomes[name] is Outcome.PASSED]
    return {
        "defective": len(defective),
        "refused": len(defective) - len(missed),
        "missed": missed,
        "clean": len(clean),
        "wrongly_refused": [name for name in clean if outcomes[name] is Outcome.REFUSED],
    }
