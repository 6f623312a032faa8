"""The sample house for the tests of the Python judges, and a warm gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from python_house import PythonHouse, python_house

from foundry_implementation_actor.gate.warm import Warm


@pytest.fixture
def house(tmp_path: Path) -> PythonHouse:
    return python_house(tmp_path / "house")


@pytest.fixture
def warm() -> Iterator[Warm]:
    with Warm() as kept:
        yield kept
