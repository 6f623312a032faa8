"""The README says what is so: its table, its sidecar, its commands, its exit codes, its example."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor import CapabilityConfig, lint, render_cards
from foundry_implementation_actor.actor.settings import VARIABLES, Settings
from foundry_implementation_actor.actor.task_file import read_task_file
from foundry_implementation_actor.cli.main import COMMANDS, main
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED, MEANINGS
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.domain.task import read_task

README = (Path(__file__).parents[1] / "README.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, its own two head lines left out."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    # A bar inside a cell is written `\|`.
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def block(language: str, start: str) -> str:
    """The code block of this language that begins with these words, its indentation taken away."""
    for match in re.finditer(rf"^( *)```{language}\n(.*?)^ *```$", README, re.MULTILINE | re.DOTALL):
        text = "\n".join(line.removeprefix(match[1]) for line in match[2].splitlines())
        if text.startswith(start):
            return f"{text}\n"
    raise AssertionError(f"the README has no {language} block that starts with {start!r}")


def test_the_table_of_settings_is_the_one_that_the_program_has() -> None:
    wanted = [
        [
            f"`{variable.name}`",
            f"`{variable.default}`" if variable.default else "",
            variable.what + (" (secret)" if variable.secret else ""),
        ]
        for variable in VARIABLES
    ]
    assert rows("Settings") == wanted, "\n".join(f"| {' | '.join(row)} |" for row in wanted)


def test_the_sidecar_passes_lint_without_a_doubt(tmp_path: Path) -> None:
    (tmp_path / "actor-agentic-context.yaml").write_text(block("yaml", "context:"))
    report = lint(tmp_path)
    assert (report.errors, report.warns) == ([], [])


def test_the_tag_to_set_is_that_of_the_sidecars_component(tmp_path: Path) -> None:
    (tmp_path / "actor-agentic-context.yaml").write_text(block("yaml", "context:"))
    config = CapabilityConfig.load(tmp_path)
    assert f"git tag {config.image_name(config.components[0].name)}/v0.1.0" in README


def test_the_task_that_is_shown_can_be_put_to_the_door(tmp_path: Path) -> None:
    shown = block("console", "$ cat task.yaml").partition("\n")[2].partition("\n$ ")[0]
    (tmp_path / "task.yaml").write_text(shown)
    task = read_task(Door.IMPLEMENT, read_task_file(str(tmp_path / "task.yaml")))
    assert f"impl/{task.task_id}" in README
    assert task.definition_of_done


def test_the_call_that_is_shown_asks_for_the_same_as_the_file(tmp_path: Path) -> None:
    console = block("console", "$ cat task.yaml")
    (tmp_path / "task.yaml").write_text(console.partition("\n")[2].partition("\n$ ")[0])
    [call] = [shlex.split(part) for part in re.split(r"^\$ ", console, flags=re.MULTILINE) if part.startswith("curl")]
    assert json.loads(call[-1]) == {"from": "me", "payload": read_task_file(str(tmp_path / "task.yaml"))}
    assert f":{Settings.from_env({'HOME': '/'}).port}/{Door.IMPLEMENT}" in call[-3]


def test_the_embedding_that_is_shown_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "actor-agentic-context.yaml").write_text(block("yaml", "context:"))
    render_cards(CapabilityConfig.load(tmp_path), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "a-token-for-tests")
    names: dict[str, Any] = {}
    exec(compile(block("python", "from papeete"), "README.md", "exec"), names)
    assert set(names["actor"].card.actions) == {"implement-task"}


def test_the_question_that_is_shown_can_be_put_to_the_door(tmp_path: Path) -> None:
    shown = block("console", "$ cat assess.yaml").partition("\n")[2].partition("\n$ ")[0]
    (tmp_path / "assess.yaml").write_text(shown)
    assert read_task(Door.ASSESS, read_task_file(str(tmp_path / "assess.yaml"))).acceptance_surface


def named_commands() -> set[str]:
    return set(re.findall(r"foundry-implementation-actor ([a-z][a-z-]*)", README)) | {
        name for row in rows("Commands") for name in re.findall(r"`([a-z][a-z-]*)", row[0])
    }


def test_every_command_has_its_row() -> None:
    assert set(COMMANDS) <= named_commands()


@pytest.mark.parametrize("name", sorted(named_commands()))
def test_every_command_that_is_named_exists_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: foundry-implementation-actor {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", sorted(set(re.findall(r"^ *\$ (foundry-implementation-actor .*)$", README, re.MULTILINE)))
)
def test_every_option_that_is_shown_is_known(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line.partition("#")[0])
    assert main([words[1], "--help"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in shown] == []


def test_the_exit_codes_are_those_of_the_program() -> None:
    sentence = " ".join(README.partition("Exit codes: ")[2].partition(".\n")[0].split())
    told = {int(code) for code in re.findall(r"\b\d+\b", sentence)}
    assert told == {EXIT_DELIVERED, EXIT_REFUSED, *(meaning.exit_code for meaning in MEANINGS.values())}


def test_every_file_that_is_linked_is_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert [target for target in targets if not (Path(__file__).parents[1] / target).exists()] == []
