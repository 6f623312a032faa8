from __future__ import annotations

from pathlib import Path

from trees import PHP, PYTHON, app, everything, needs_php, write

from foundry_implementation_actor.gate.fitness import Finding, State, examine
from foundry_implementation_actor.gate.house import House


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
