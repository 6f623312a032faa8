"""docs/three-amigos.md: its commands run in its order, and answer what it shows."""

from __future__ import annotations

import re
from pathlib import Path

from foundry_implementation_actor.domain.run import Door
from support.example_forge import EXAMPLES, ROOT, plain
from support.repos import Repo
from support.shown import play, shown

DOCUMENT = ROOT / "docs" / "three-amigos.md"
REPOSITORY = "forge/acme-lab/ACME.PARTS.CAP.SUP.007.WID-implementation.git"


def test_the_round_runs_as_it_is_told(tmp_path: Path) -> None:
    lines = shown(DOCUMENT)
    typed = play([line.command for line in lines], plain(TMPDIR=str(tmp_path)), ROOT)
    assert [one.output for one in typed] == [line.output for line in lines]
    # The proposal is not feasible, told in words and as JSON, and leaves no branch; the first branch is not as agreed.
    ended = {line.command: one.code for line, one in zip(lines, typed, strict=True)}
    assert ended["git -C \"$REPOSITORY\" branch --list 'impl/*'"] == 0
    assert [code for command, code in ended.items() if "proposal.yaml" in command] == [0, 1, 1]
    assert sum(ended.values()) == 3
    [place] = tmp_path.glob("tmp.*")
    assert "empty-order" in Repo(place / REPOSITORY).read("backend/orders.py", "impl/TASK-014")


def test_what_is_sent_again_is_the_agreed_task_and_what_was_wrong() -> None:
    agreed, again = ((EXAMPLES / "three-amigos" / f"{name}.yaml").read_text() for name in ("agreed", "again"))
    assert again.startswith(agreed)
    assert re.fullmatch(r'remediation_context: ".*"\n', again.removeprefix(agreed))


def test_the_doors_that_it_names_are_the_actors() -> None:
    assert set(re.findall(r"POST /([a-z-]+)", DOCUMENT.read_text())) == {door.value for door in Door}


def test_what_it_links_to_is_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", DOCUMENT.read_text()) if "://" not in target]
    assert targets
    assert [target for target in targets if not (DOCUMENT.parent / target).exists()] == []
