"""A package that is installed where a held session sees nothing: in a home or in /tmp, as a clone often is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import foundry_implementation_actor
from foundry_implementation_actor.sandbox.choose import why_not
from support.place import Place, write


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_a_package_below_a_hidden_place_works_all_the_same(tmp_path: Path, sandbox: str) -> None:
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")
    package = Path(foundry_implementation_actor.__file__).parent
    shutil.copytree(package, tmp_path / "lib" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    with Place(tmp_path / "place", local=True) as place:
        actor = place.command(
            "implement", steps=(write("backend/x"),), PYTHONPATH=str(tmp_path / "lib"), SANDBOX=sandbox
        )
        output, errors = actor.communicate(timeout=60)
    assert (actor.returncode, output) == (0, "accepted: impl/TASK-1\n"), errors
    assert f"held by {sandbox}" in errors
