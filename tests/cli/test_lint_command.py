import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from foundry_implementation_actor.cli.main import main
from foundry_implementation_actor.definition.cards import DOORS

SIDECAR = "actor-agentic-context.yaml"
SOUND = """\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: ACME.PARTS.CAP.SUP.007.WID
source_repo: acme-lab/wid
registry_repo: acme-lab/governance
components: [{name: web, path: web/, dockerfile: web}]
ground_in: [{name: notes, answers: why, fetch: [cat], into: notes.md, load: eager}]
"""


@pytest.fixture
def use(tmp_path: Path) -> Path:
    (tmp_path / SIDECAR).write_text(SOUND)
    return tmp_path


def test_a_sound_sidecar_is_exit_code_zero(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(use)]) == 0
    assert capsys.readouterr().out == f"ok: {use / SIDECAR}: the sidecar conforms (1 component, 1 knowledge source)\n"


def test_the_default_is_the_current_directory(
    use: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(use)
    assert main(["lint"]) == 0
    assert capsys.readouterr().out.startswith(f"ok: {SIDECAR}: the sidecar conforms")


def test_errors_are_exit_code_one_and_each_is_a_line(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (use / SIDECAR).write_text(SOUND.replace("claude-code", "x").replace("path: web/", "path: web"))
    assert main(["lint", str(use)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:3] for line in lines[:-1]] == [
        ["error", f"{use / SIDECAR}:2:9", "engine"],
        ["error", f"{use / SIDECAR}:6:32", "components[0].path"],
    ]
    assert lines[-1] == "2 errors, 0 warnings"


def test_an_unmigrated_sidecar_is_a_warning_and_exit_code_zero(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (use / SIDECAR).write_text("context: other/v2\n")
    assert main(["lint", str(use)]) == 0
    assert "warning: " in (shown := capsys.readouterr().out)
    assert "UNMIGRATED" in shown


def test_json_is_one_object_with_every_line(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (use / SIDECAR).write_text(SOUND + "scrach: []\n")
    assert main(["lint", str(use), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], answer["errors"], len(answer["oks"])) == (True, [], 1)
    what, where = "is not a key of this release and is ignored", str(use / SIDECAR)
    assert answer["warnings"] == [
        {
            "text": f"{where}:8:1: scrach: {what}; did you mean `scratch`?",
            "where": where,
            "line": 8,
            "column": 1,
            "key": "scrach",
            "message": what,
            "write": "did you mean `scratch`?",
        }
    ]


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [("engine: 'x\n", (1, 9), "a quote that is never closed"), ("", (None, None), "the file is empty")],
)
def test_json_of_a_file_that_cannot_be_read_has_the_place_that_is_known(
    use: Path, capsys: pytest.CaptureFixture[str], content: str, place: tuple[int | None, int | None], message: str
) -> None:
    (use / SIDECAR).write_text(content)
    assert main(["lint", str(use), "--json"]) == 1
    [error] = json.loads(capsys.readouterr().out)["errors"]
    assert (error["where"], (error["line"], error["column"])) == (str(use / SIDECAR), place)
    assert message in error["message"]
    assert error["write"]


def test_json_of_cards_that_do_not_agree_has_their_text(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render-cards", str(use)]) == 0
    (use / DOORS).unlink()
    capsys.readouterr()
    assert main(["lint", str(use), "--json"]) == 1
    [error] = json.loads(capsys.readouterr().out)["errors"]
    assert error["text"] == error["message"]
    assert error["line"] is None


def test_cards_beside_the_sidecar_are_compared_too(use: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render-cards", str(use)]) == 0
    assert main(["lint", str(use / SIDECAR)]) == 0
    assert "the cards agree with the definition" in capsys.readouterr().out
    doors = use / DOORS
    doors.write_text(doors.read_text().replace("engine: claude-code", "engine: other"))
    assert main(["lint", str(use)]) == 1
    assert "names the engine 'other'" in capsys.readouterr().out
    doors.unlink()
    assert main(["lint", str(use)]) == 1
    assert f"{doors}: the card is missing" in capsys.readouterr().out


def test_a_folder_without_a_sidecar_says_what_to_create(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path / "none")]) == 1
    assert f"create {SIDECAR} there" in capsys.readouterr().out


def on_a_terminal(use: Path, **environment: str) -> bytes:
    """What `lint` prints when its output is a terminal."""
    code = "import sys; from foundry_implementation_actor.cli.main import main; sys.exit(main(sys.argv[1:]))"
    ours, theirs = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"} | environment
    with subprocess.Popen([sys.executable, "-c", code, "lint", str(use)], stdout=theirs, env=env) as child:
        child.wait()
    os.close(theirs)
    shown = os.read(ours, 65_536)
    os.close(ours)
    return shown


def test_a_terminal_gets_colour_and_no_color_takes_it_away(use: Path) -> None:
    assert b"\x1b[32mok\x1b[0m: " in on_a_terminal(use)
    assert b"\x1b" not in on_a_terminal(use, NO_COLOR="1")


def test_a_terminal_that_knows_no_colour_gets_none(use: Path) -> None:
    assert b"\x1b" not in on_a_terminal(use, TERM="dumb")
