import json
from pathlib import Path

import pytest

from foundry_implementation_actor.cli.main import main

SOUND = """\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: ACME.PARTS.CAP.SUP.007.WID
source_repo: acme-lab/wid
registry_repo: acme-lab/governance
components: [{name: web, path: web/, dockerfile: web}]
ground_in: [{name: notes, answers: why, fetch: [cat, "{capability}"], into: notes.md, load: on-demand}]
"""


@pytest.fixture
def use(tmp_path: Path) -> Path:
    (tmp_path / "actor-agentic-context.yaml").write_text(SOUND)
    return tmp_path


def test_the_table_has_one_aligned_line_for_each_name(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(use), "--registry", "reg.example:5000/team"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({len(line) - len(line.split("  ", 1)[1].lstrip()) for line in lines}) == 1
    assert "reg.example:5000/team/acme.parts/sup.007.wid/web:<version>" in "\n".join(lines)
    assert lines[-1].endswith("cat ACME.PARTS.CAP.SUP.007.WID > notes.md (on-demand)")


def test_json_holds_every_name_under_a_plain_identifier(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(use), "--json"]) == 0
    names = json.loads(capsys.readouterr().out)
    assert names["components"] == [
        {
            "name": "web",
            "path": "web/",
            "dockerfile": "web",
            "image_name": "acme.parts.cap.sup.007.wid-web",
            "version_tag": "acme.parts.cap.sup.007.wid-web/vX.Y.Z",
            "image_ref": "<registry>/acme.parts/sup.007.wid/web:<version>",
        }
    ]
    fetch = ["cat", "ACME.PARTS.CAP.SUP.007.WID"]
    source = {"name": "notes", "answers": "why", "fetch": fetch, "into": "notes.md", "load": "on-demand"}
    assert names["ground_in"] == [source]
    assert (names["git_user_name"], names["writes_only_under"]) == (names["actor_name"], ["web/"])
    assert all(name.isidentifier() for name in names)
    assert names["actor_name"] == "ACME.PARTS.CAP.SUP.007.WID-implementation"


@pytest.mark.parametrize(
    ("verify", "said", "remediate"),
    [
        ("[make, test]", "make test", 0),
        ("{run: [make, test], remediate: 1}", "make test (when red, up to 1 remediation)", 1),
        ("{run: [make, test], remediate: 2}", "make test (when red, up to 2 remediations)", 2),
    ],
)
def test_a_verify_is_shown_with_how_often_it_may_be_remediated(
    use: Path, capsys: pytest.CaptureFixture[str], verify: str, said: str, remediate: int
) -> None:
    text = SOUND.replace("dockerfile: web}", f"dockerfile: web, verify: {verify}}}")
    (use / "actor-agentic-context.yaml").write_text(text)
    assert main(["show", str(use)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("verify(web)")]
    assert line.removeprefix("verify(web)").strip() == said
    assert main(["show", str(use), "--json"]) == 0
    [web] = json.loads(capsys.readouterr().out)["components"]
    assert (web["verify"], web["remediate"]) == (["make", "test"], remediate)


@pytest.mark.parametrize("registry", ["https://reg.example", "reg.example/Team", "", "-x", "a b", "r:port"])
def test_a_registry_with_a_scheme_or_odd_characters_is_refused(
    use: Path, registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(use), f"--registry={registry}"]) == 2
    assert "write host[:port][/path], without a scheme" in capsys.readouterr().err


def test_a_broken_sidecar_is_exit_code_two_with_every_error(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (use / "actor-agentic-context.yaml").write_text(SOUND.replace("claude-code", "x").replace("acme-lab/wid", "y"))
    assert main(["show", str(use)]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert ":2:9: engine: 'x' is no engine" in shown
    assert ":4:14: source_repo: 'y' is not an owner" in shown
