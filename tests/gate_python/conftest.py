"""The sample house for the tests of the Python judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_house import PythonHouse, python_house


@pytest.fixture
def house(tmp_path: Path) -> PythonHouse:
    return python_house(tmp_path / "house")
