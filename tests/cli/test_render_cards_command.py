from pathlib import Path

import pytest

from foundry_implementation_actor.cli.main import main
from foundry_implementation_actor.definition.cards import CARDS

SOUND = """\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: ACME.PARTS.CAP.SUP.007.WID
source_repo: acme-lab/wid
registry_repo: acme-lab/governance
components: [{name: web, path: web/, dockerfile: web}]
ground_in: []
"""


def test_the_four_cards_are_written_beside_the_sidecar_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "use.yaml").write_text(SOUND)
    assert main(["render-cards", str(tmp_path / "use.yaml")]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {tmp_path / name}" for name in CARDS]


def test_a_broken_sidecar_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "use.yaml").write_text(SOUND.replace("claude-code", "x"))
    assert main(["render-cards", str(tmp_path / "use.yaml")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["use.yaml"]
