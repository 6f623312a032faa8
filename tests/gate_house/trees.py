"""Small apps for the tests of the house."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.gate.house import House, Missing

needs_php = pytest.mark.skipif(
    not shutil.which("php") or not shutil.which("phpunit"), reason="PHP is not here; scripts/setup-php installs it"
)

PYTHON = {
    "pyproject.toml": "[project]\nname = 'sample'\nversion = '0'\n",
    "src/plugins/__init__.py": "",
    "src/plugins/orders/__init__.py": "",
    "src/plugins/orders/service.py": "class OrderService:\n    pass\n\n\nclass Line:\n    pass\n",
    "src/plugins/orders/pricing.py": "def price() -> int:\n    return 1\n",
    "tests/plugins/orders/test_service.py": "def test_it():\n    assert True\n",
}
PHP = {
    "composer.json": "{}",
    "src/Plugins/Demo/Services/Greeter.php": "<?php\n",
    "src/Plugins/Demo/Contracts/Speaks.php": "<?php\n",
    "tests/Plugins/Demo/GreeterTest.php": "<?php\n",
}


def app(root: Path, files: Mapping[str, str | bytes], more: Mapping[str, str | bytes] | None = None) -> House:
    """An app with these files, and its house."""
    write(root, {**files, **(more or {})})
    return House.open(root)


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def found(house: House, name: str) -> Place:
    place = house.find(Target(*name.split(".")))
    assert isinstance(place, Place), place
    return place


def missing(house: House, name: str) -> str:
    place = house.find(Target(*name.split(".")))
    assert isinstance(place, Missing), place
    return place.message


def everything(root: Path) -> dict[str, bytes | None]:
    """Every file with its bytes and every folder, the gate's own state left out."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
        if ".foundry" not in path.relative_to(root).parts
    }
