"""What a user of the published package gets: the wheel, its cards, its API, and what importing it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import foundry_implementation_actor as package

ROOT = Path(__file__).parents[1]
PACKAGE = "foundry_implementation_actor"
BUILD = f"""
import sys
from hatchling.builders.wheel import WheelBuilder
print(next(WheelBuilder({str(ROOT)!r}).build(directory=sys.argv[1], versions=["standard"])))
"""
API = (
    "CapabilityConfig", "ClaudeCodeEngine", "Component", "ConfigError", "Grounding", "HandlerError", "Report",
    "ServeError", "Settings", "SettingsError", "cards_path", "conformance", "lint", "make_implement_task",
    "render_cards", "serve", "version",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as a publisher builds it."""
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run([sys.executable, "-c", BUILD, folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return Path(built.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that holds the wheel's content and nothing else, as an installer lays it out."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run(installed: Path, code: str, *words: str) -> str:
    """Run code on the installed package, this project's tree out of reach; its stdout."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=installed,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_the_package_its_metadata_and_nothing_else(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert tops == {PACKAGE, next(top for top in tops if top.endswith(".dist-info"))}
    sources = {f"{PACKAGE}/{path.relative_to(ROOT / 'src' / PACKAGE)}" for path in tracked()}
    assert {name for name in names(wheel) if name.startswith(f"{PACKAGE}/")} == sources


def tracked() -> list[Path]:
    """The package's files that git has or would take."""
    words = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for name in listed if name and (path := ROOT / name).is_file()]


def test_the_wheel_holds_what_is_not_code_too(wheel: Path) -> None:
    wanted = {
        "py.typed", "definition/cards/actor.yaml", "definition/cards/actor-data.yaml",
        "definition/cards/actor-message.yaml", "definition/cards/actor-synchronous-messaging.yaml",
        "demo/sample/session.yaml", "demo/sample/instance/actor-agentic-context.yaml",
        "demo/sample/cart-repository/.gitignore", "demo/sample/cart-repository/backend/deployment/local/Dockerfile",
    }  # fmt: skip
    assert {f"{PACKAGE}/{name}" for name in wanted} - names(wheel) == set()


def test_the_metadata_names_the_commands_the_licence_and_the_dependencies(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    read = {name.rpartition("/")[2]: archive.read(name).decode() for name in names(wheel) if ".dist-info/" in name}
    for command in ("foundry-implementation-actor", "fia"):
        assert f"\n{command} = foundry_implementation_actor.cli.main:main\n" in read["entry_points.txt"]
    assert "\nLicense-Expression: MIT\n" in read["METADATA"]
    required = {
        line.split()[1].split(">")[0] for line in read["METADATA"].splitlines() if line.startswith("Requires-Dist")
    }
    assert {"click", "pyyaml", "papeete-actor-synchronous-messaging", "papeete-version"} <= required
    assert not [name for name in required if name.startswith("ruamel")]
    assert "LICENSE" in read


def test_the_cards_in_the_wheel_pass_the_frameworks_own_linter(installed: Path) -> None:
    code = f"from {PACKAGE} import cards_path; print(cards_path())"
    cards = run(installed, code).strip()
    assert Path(cards).is_relative_to(installed)
    linter = Path(sys.executable).with_name("papeete-actor-synchronous-messaging")
    linted = subprocess.run([linter, "lint-card", cards], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_installed_package_works_without_this_tree(installed: Path) -> None:
    code = f"from {PACKAGE}.cli.main import main; import {PACKAGE}; print({PACKAGE}.__file__); main(['--help'])"
    file, _, shown = run(installed, code).partition("\n")
    assert Path(file).is_relative_to(installed)
    assert "Examples:" in shown


def test_importing_the_package_brings_in_no_server_no_telemetry_and_no_yaml(installed: Path) -> None:
    code = f"import sys; before = set(sys.modules); import {PACKAGE}; print(*sorted(set(sys.modules) - before))"
    loaded = {name.partition(".")[0] for name in run(installed, code).split()}
    assert loaded & {"starlette", "uvicorn", "opentelemetry", "yaml", "click", "asyncio", "subprocess"} == set()


def test_the_embedding_brings_in_no_server_and_no_telemetry_sdk(installed: Path) -> None:
    code = f"""
import sys
from {PACKAGE} import CapabilityConfig, ClaudeCodeEngine, make_implement_task, conformance, lint, render_cards, Settings
from papeete_actor_synchronous_messaging.actor import Actor
print(*sorted(sys.modules))
"""
    loaded = set(run(installed, code).split())
    assert {"starlette", "uvicorn", "opentelemetry.sdk"} & loaded == set()


def test_the_public_names_are_those_of_the_contract_and_each_can_be_imported(installed: Path) -> None:
    assert tuple(sorted(package.__all__, key=str)) == API
    assert dir(package) == package.__all__
    code = f"import {PACKAGE} as it; print(*[name for name in it.__all__ if not callable(getattr(it, name))])"
    assert run(installed, code) == "conformance\n"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


def test_the_version_is_that_of_the_wheel(wheel: Path, installed: Path) -> None:
    version = run(installed, f"import {PACKAGE}; print({PACKAGE}.version())").strip()
    assert wheel.name == f"{PACKAGE}-{version}-py3-none-any.whl"
    assert version == package.version()
