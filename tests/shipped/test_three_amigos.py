"""docs/three-amigos.md: its commands run in its order, and answer what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from foundry_implementation_actor.domain.run import Door
from support.example_forge import ROOT, Forge
from support.repos import Repo

DOCUMENT = ROOT / "docs" / "three-amigos.md"


def shown() -> list[tuple[str, str]]:
    """Every command of the document with what it shows below it."""
    blocks = re.findall(r"^```console\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    parts = re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def test_the_round_runs_as_it_is_told(tmp_path: Path) -> None:
    forge = Forge(tmp_path)
    ran = []
    for command, output in shown():
        words = shlex.split(command)
        if words[0] == "cat":
            (tmp_path / words[1]).write_text(output)
            continue
        ran.append(words)
        script = "objection" if "proposal.yaml" in words else "orders"
        done = subprocess.run(
            words, cwd=tmp_path, env=forge.environment(script), capture_output=True, text=True, check=False, timeout=120
        )
        assert done.stdout == output, done.stderr
        assert done.returncode == (1 if "proposal.yaml" in words else 0)
        assert ("impl/TASK-014" in Repo(forge.repository).branches()) == (
            "implement" in {word for words in ran for word in words}
        )
    assert [words[1] for words in ran] == ["assess", "assess", "implement", "implement"]
    assert "empty-order" in Repo(forge.repository).read("backend/orders.py", "impl/TASK-014")


def test_the_doors_that_it_names_are_the_actors() -> None:
    assert set(re.findall(r"POST /([a-z-]+)", DOCUMENT.read_text())) == {door.value for door in Door}


def test_what_it_links_to_is_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", DOCUMENT.read_text()) if "://" not in target]
    assert targets
    assert [target for target in targets if not (DOCUMENT.parent / target).exists()] == []
