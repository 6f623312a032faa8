from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from trees import PHP, PYTHON, app, everything, needs_php, write

from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.gate.fitness import examine
from foundry_implementation_actor.gate.house import House
from support.apps import FAKE, TEST, python_app


def findings(house: House) -> dict[str, Finding]:
    before = everything(house.root)
    found = {finding.subject: finding for finding in examine(house)}
    assert everything(house.root) == before
    assert all(bool(finding.mend) == (finding.state is not State.OK) for finding in found.values())
    return found


def test_a_python_app_is_described_with_every_judge(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PYTHON))
    assert list(found) == [
        "app", "plugins", "syntax", "shape", "linkage", "own-test", "construction", "isolation", "state",
    ]  # fmt: skip
    assert found["app"].seen.startswith(f"{tmp_path} (python, by pyproject.toml")
    assert found["plugins"].seen == "1: orders"
    assert found["syntax"].seen.startswith("Python 3.")
    assert found["linkage"].seen.startswith("ty 0.0.108")
    assert found["own-test"].seen.startswith("pytest ")
    assert found["construction"].state is State.WARNING
    assert found["state"].state is State.OK


@needs_php
def test_a_php_app_is_described_with_every_judge(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PHP, {"vendor/autoload.php": "<?php"}))
    assert list(found) == [
        "app", "plugins", "syntax", "strict-types", "shape", "linkage", "own-test", "construction", "isolation",
        "state",
    ]  # fmt: skip
    assert found["syntax"].seen.startswith("PHP 8.")
    assert found["linkage"].seen.startswith("php-parser (")
    assert found["own-test"].seen.endswith("phpunit")


@needs_php
def test_a_php_app_without_an_autoloader_is_told_what_goes_unjudged(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PHP))
    assert [found[judge].mend for judge in ("linkage", "own-test")] == ["composer install"] * 2


@needs_php
def test_the_apps_own_analyser_is_named(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PHP, {"vendor/bin/phpstan": ""}))
    assert found["linkage"].seen == f"the app's own analyser ({tmp_path}/vendor/bin/phpstan)"


def test_an_interpreter_without_pytest_leaves_behaviour_unjudged(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"gate.yaml": "interpreter: [/usr/bin/python3, -I, -S]\n"})
    found = findings(house)
    assert found["own-test"].state is State.WARNING
    assert "behaviour goes unjudged" in found["own-test"].seen
    assert found["own-test"].mend.endswith("-m pip install pytest")


def test_an_interpreter_that_is_not_there_is_missing(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PYTHON, {"gate.yaml": "interpreter: [bin/no-python]\n"}))
    assert found["syntax"].state is State.MISSING
    assert found["syntax"].seen == f"{tmp_path}/bin/no-python is not there"
    assert "own-test" not in found


def test_an_interpreter_that_fails_is_missing_with_what_it_said(tmp_path: Path) -> None:
    write(tmp_path, {"bin/python": "#!/bin/sh\necho broken >&2\nexit 3\n"})
    (tmp_path / "bin/python").chmod(0o755)
    found = findings(app(tmp_path, PYTHON, {"gate.yaml": "interpreter: [bin/python]\n"}))
    assert found["syntax"].seen == f"{tmp_path}/bin/python ended with 3: broken"


@needs_php
def test_a_runner_that_cannot_be_run_leaves_behaviour_unjudged(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PHP, {"gate.yaml": "runner: [tools/phpunit]\n"}))
    assert found["own-test"].seen == f"{tmp_path}/tools/phpunit cannot be run: behaviour goes unjudged"


def test_an_app_without_plugins_is_shown_the_way(tmp_path: Path) -> None:
    found = findings(app(tmp_path, {"pyproject.toml": ""}))
    assert found["plugins"].state is State.WARNING
    assert found["plugins"].seen == "none in src/plugins/{plugin}"


def test_a_construction_command_is_named(tmp_path: Path) -> None:
    found = findings(app(tmp_path, PYTHON, {"gate.yaml": 'construct: [bin/build, "{class}"]\n'}))
    assert found["construction"].seen == f"{tmp_path}/bin/build {{class}}"


def test_a_state_folder_that_is_a_link_is_missing(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    (tmp_path / ".foundry").symlink_to("elsewhere")
    assert findings(house)["state"].state is State.MISSING


def test_an_app_on_a_path_with_a_colon_is_told_that_python_cannot_import_there(tmp_path: Path) -> None:
    found = findings(app(tmp_path / "my:app", PYTHON))["app"]
    assert (found.state, "':'" in found.seen, "':'" in found.mend) == (State.MISSING, True, True)
    assert findings(app(tmp_path / "mine", PYTHON))["app"].state is State.OK


ROOT = Path(__file__).parents[2]


def brought_by(extra: str) -> set[str]:
    """The packages that come with this one and an extra of it, as far as they are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    found: set[str] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        if requirement.name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(requirement.name)
        wanted += metadata.requires(requirement.name) or ()
    return found


def installed(venv: Path, packages: set[str]) -> Path:
    """A new environment with these packages, and this one from its sources; gives its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(venv)}))
    # Copied, since what a gate runs sees nothing of the place where the packages of these tests may lie.
    for package in packages:
        for file in metadata.files(package) or ():
            place = Path(str(file.locate()))
            if len(file.parts) > 1 and file.parts[0] == "..":
                shutil.copy2(place, venv / "bin" / place.name)
            else:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(place, site / file)
    (site / "sources.pth").write_text(f"{ROOT / 'src'}\n")
    return venv / "bin" / "python"


def test_the_extra_alone_judges_the_tests_of_an_app_without_an_environment(tmp_path: Path) -> None:
    python = installed(tmp_path / "venv", brought_by("gate"))
    root = python_app(tmp_path / "app")
    (tmp_path / "body").write_text(TEST)
    (tmp_path / "fake").write_text(FAKE)
    said = {}
    for words in (("doctor",), ("implement", "shop", "TestCart", "--content", tmp_path / "body"),
                  ("implement", "shop", "Cart", "--content", tmp_path / "fake")):  # fmt: skip
        argv = [python, "-m", "foundry_implementation_actor.cli", "gate", *words, "--json"]
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        said[words[-1]] = json.loads(done.stdout)
    states = {finding["subject"]: finding["state"] for finding in said["doctor"]["findings"]}
    assert {states[judge] for judge in ("syntax", "shape", "linkage", "own-test")} == {State.OK}
    assert said[tmp_path / "body"]["ok"]
    assert said[tmp_path / "fake"]["error"].startswith("refused by own-test")
