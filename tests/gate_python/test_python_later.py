"""Bodies written after the judges: the figures that the documentation states are the ones that come out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from later_bodies import CLEAN, DEFECTIVE
from python_house import SAMPLES, PythonHouse

from foundry_implementation_actor.domain.verdict import Outcome

FIGURES: dict[str, Any] = json.loads((SAMPLES / "later_figures.json").read_bytes())


def outcome(house: PythonHouse, text: str) -> str:
    """Which of the judges before the own test refuses, or `none`."""
    for judge in ("syntax", "shape", "linkage"):
        verdict = house.judge(judge, text)
        if verdict.outcome is Outcome.REFUSED:
            return judge
    return "none"


@pytest.fixture
def registry(house: PythonHouse) -> PythonHouse:
    """A module elsewhere in the app gives the class an attribute, as plug-in registries do."""
    house.write(
        "src/plugins/registry.py", "import plugins.orders.contracts as c\n\nc.OrderServiceContract.registry = ['a']\n"
    )
    return house


@pytest.mark.parametrize("name", DEFECTIVE)
def test_a_later_defective_body_is_caught_as_the_figures_say(name: str, registry: PythonHouse) -> None:
    assert (outcome(registry, DEFECTIVE[name].text) == "none") is (name in FIGURES["defective"]["missed"])


@pytest.mark.parametrize("name", CLEAN)
def test_a_later_clean_body_is_refused_as_the_figures_say(name: str, registry: PythonHouse) -> None:
    assert (outcome(registry, CLEAN[name].text) != "none") is (name in FIGURES["clean"]["refused"])


def test_the_figures_count_what_is_there() -> None:
    assert FIGURES["defective"]["bodies"] == len(DEFECTIVE)
    assert FIGURES["clean"]["bodies"] == len(CLEAN)
    assert set(FIGURES["defective"]["missed"]) <= set(DEFECTIVE)
    assert set(FIGURES["clean"]["refused"]) <= set(CLEAN)
