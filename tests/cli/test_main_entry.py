import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from foundry_implementation_actor.cli import main as entry
from foundry_implementation_actor.cli.gate import COMMANDS as GATE_COMMANDS
from foundry_implementation_actor.cli.main import COMMANDS, Entry, main
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.install import install

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
    folder = tmp_path / "use"
    folder.mkdir()
    (folder / "actor-agentic-context.yaml").write_text(SOUND)
    return folder


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_help_lists_every_command_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert all(f"  {name} " in shown and command.summary in shown for name, command in COMMANDS.items())


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = """
import sys
from foundry_implementation_actor.cli.main import main
main(["--help"])
heavy = {"yaml", "asyncio", "importlib.metadata", "starlette", "uvicorn", "subprocess", "tempfile"}
loaded = heavy | {m for m in sys.modules if m.startswith("foundry_implementation_actor.cli.")}
print("loaded:", sorted(loaded & set(sys.modules)))
"""
    assert python(code).stdout.endswith("loaded: ['foundry_implementation_actor.cli.main']\n")


def test_lint_and_show_import_no_server_and_no_framework(use: Path) -> None:
    code = """
import sys
from foundry_implementation_actor.cli.main import main
assert main(["lint", sys.argv[1]]) == main(["show", sys.argv[1]]) == 0
heavy = {"asyncio", "papeete_actor_synchronous_messaging", "starlette", "subprocess", "importlib.metadata"}
print("loaded:", sorted(heavy & set(sys.modules)))
"""
    assert python(code, str(use)).stdout.endswith("loaded: []\n")


@pytest.mark.parametrize("name", ["lint", "show", "render-cards"])
def test_every_command_shows_examples_in_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "-h"]) == 0
    assert f"foundry-implementation-actor {name}" in capsys.readouterr().out.split("Examples:")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_names_its_exit_codes_in_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert "Exit codes: 0 " in capsys.readouterr().out


WITHOUT = """
import sys
for name in ("tree_sitter", "tree_sitter_php", "mcp", "anyio"): sys.modules[name] = None
from foundry_implementation_actor.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["gate", "mcp"])
def test_help_needs_no_extra(name: str) -> None:
    done = python(WITHOUT, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Examples:" in done.stdout


INSTALL = f"hint: {install('gate')}"


def test_without_the_extra_the_server_says_what_to_install() -> None:
    done = python(WITHOUT, "mcp")
    assert (done.returncode, done.stdout) == (3, "")
    needs, hint = done.stderr.splitlines()
    assert needs.startswith("error: `mcp` needs the module ")
    assert hint == INSTALL


def test_without_the_extra_a_php_body_is_not_judged_and_the_gate_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "composer.json").write_text("{}")
    body = tmp_path / "src/Plugins/Shop/Cart.php"
    body.parent.mkdir(parents=True)
    body.write_text("<?php\n\ndeclare(strict_types=1);\n\nnamespace App\\Plugins\\Shop;\n\nfinal class Cart\n{\n}\n")
    done = python(WITHOUT, "gate", "implement", "Shop", "Cart", "--content", str(body), "--app", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "error: the judges for php need tree_sitter_php, which the `gate` extra brings",
        INSTALL,
    ]


def test_without_the_extra_a_python_app_has_its_gate(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    assert python(WITHOUT, "gate", "make", "plugin", "shop", "--app", str(tmp_path)).returncode == 0
    assert python(WITHOUT, "gate", "make", "service", "shop", "Cart", "--app", str(tmp_path)).returncode == 0
    assert python(WITHOUT, "gate", "log", "--app", str(tmp_path)).returncode == 0


def test_a_module_of_this_package_that_is_missing_is_a_bug_whatever_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(COMMANDS, "lost", Entry("lost", "lost", "Is not there.", "gate"))
    assert main(["lost"]) == 4
    assert "this is a bug (ModuleNotFoundError)" in capsys.readouterr().err


def test_the_gate_lists_its_commands_without_importing_them() -> None:
    code = """
import sys
from foundry_implementation_actor.cli.main import main
main(["gate", "--help"])
print("loaded:", sorted(m for m in sys.modules if m.startswith("foundry_implementation_actor.cli.")))
"""
    loaded = "['foundry_implementation_actor.cli.gate', 'foundry_implementation_actor.cli.main']"
    assert python(code).stdout.endswith(f"loaded: {loaded}\n")


@pytest.mark.parametrize("table", [COMMANDS, GATE_COMMANDS])
def test_every_command_of_a_table_is_there_under_its_name(table: dict[str, Entry]) -> None:
    for name, found in table.items():
        module = importlib.import_module(f"foundry_implementation_actor.cli.{found.module}")
        assert getattr(module, found.attribute).name == name


def test_the_version_is_that_of_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    name, version = capsys.readouterr().out.split()
    assert name == "foundry-implementation-actor"
    assert version[0].isdigit()


@pytest.mark.parametrize("argv", [["frob"], ["--frob"], ["lint", "a", "b"], ["lint", "--registry"], []])
def test_a_wrong_call_is_exit_code_two_and_shows_the_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert "Usage: foundry-implementation-actor" in capsys.readouterr().err


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Put a command into the table that raises, as a module of its own would."""

    @click.command
    def fail() -> None:
        raise error

    monkeypatch.setattr(entry, "fail", fail, raising=False)
    monkeypatch.setitem(COMMANDS, "fail", Entry("main", "fail", "Fail."))


def test_an_error_is_two_lines_and_the_exit_code_of_its_meaning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ActorError(Code.UNFIT, "no git is there", hint="install git", where="PATH"))
    assert main(["fail"]) == 3
    assert capsys.readouterr().err == "error: PATH: no git is there\nhint: install git\n"


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert main(["fail"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_bug_is_one_line_and_its_traceback_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    raising(monkeypatch, ZeroDivisionError("by \ud800 nothing"))
    assert main(["fail"]) == 4
    shown = capsys.readouterr().err
    (kept,) = tmp_path.glob("*.traceback.txt")
    assert shown == f"error: this is a bug (ZeroDivisionError); please report it with the traceback in {kept}\n"
    assert "Traceback (most recent call last)" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_the_kept_traceback_holds_no_secret_of_the_environment_even_when_that_was_scrubbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("GITHUB_TOKEN", "quince-9921-medlar")
    monkeypatch.setenv("SOME_TOOLS_API_KEY", "medlar-1299-quince")

    @click.command
    def fail() -> None:
        del os.environ["GITHUB_TOKEN"]
        raise ZeroDivisionError("quince-9921-medlar and medlar-1299-quince")

    monkeypatch.setattr(entry, "fail", fail, raising=False)
    monkeypatch.setitem(COMMANDS, "fail", Entry("main", "fail", "Fail."))
    assert main(["fail"]) == 4
    (kept,) = tmp_path.glob("*.traceback.txt")
    assert "ZeroDivisionError: *** and ***" in kept.read_text()
    assert not re.search("quince|medlar", kept.read_text())


def test_a_bug_with_nowhere_to_keep_its_traceback_is_still_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    raising(monkeypatch, ZeroDivisionError())
    assert main(["fail"]) == 4
    assert capsys.readouterr().err == (
        "error: this is a bug (ZeroDivisionError); its traceback could not be kept (No such file or directory)\n"
    )


def test_a_reader_that_goes_away_is_no_error(use: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from foundry_implementation_actor.cli.main import main; sys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "show", str(use)]
    ran = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")
