from __future__ import annotations

import json
from pathlib import Path

import pytest
from trees import PHP, app, found, missing, write

from foundry_implementation_actor.gate.house import House


def test_a_class_is_the_file_of_its_name(tmp_path: Path) -> None:
    place = found(app(tmp_path, PHP), "Demo.Greeter")
    assert place.path == "src/Plugins/Demo/Services/Greeter.php"
    assert place.module == "App\\Plugins\\Demo\\Services"
    assert place.own_test == "tests/Plugins/Demo/GreeterTest.php"


def test_a_test_class_is_found_in_the_test_folder(tmp_path: Path) -> None:
    place = found(app(tmp_path, PHP), "Demo.GreeterTest")
    assert (place.path, place.is_test) == ("tests/Plugins/Demo/GreeterTest.php", True)
    assert place.module == "App\\Tests\\Plugins\\Demo"


@pytest.mark.parametrize("name", ["greeter", "GREETER", "Greete", "Greeters"])
def test_a_class_is_found_in_its_own_case_only(tmp_path: Path, name: str) -> None:
    assert "only `make` creates a class" in missing(app(tmp_path, PHP), f"Demo.{name}")


def test_two_files_of_one_name_are_refused_naming_both(tmp_path: Path) -> None:
    house = app(tmp_path, PHP, {"src/Plugins/Demo/Greeter.php": "<?php\n"})
    message = missing(house, "Demo.Greeter")
    assert "src/Plugins/Demo/Greeter.php and src/Plugins/Demo/Services/Greeter.php" in message


def test_composer_says_which_namespace_a_folder_has(tmp_path: Path) -> None:
    autoload = {
        "autoload": {"psr-4": {"Acme\\Shop\\": ["src/", "lib/"]}},
        "autoload-dev": {"psr-4": {"Acme\\Shop\\Tests\\": "tests/", "": "any/", "X\\": 3}},
    }
    house = app(tmp_path, PHP, {"composer.json": json.dumps(autoload)})
    assert found(house, "Demo.Greeter").module == "Acme\\Shop\\Plugins\\Demo\\Services"
    assert found(house, "Demo.GreeterTest").module == "Acme\\Shop\\Tests\\Plugins\\Demo"


@pytest.mark.parametrize("folder", ["", ".", "./"])
def test_a_namespace_of_the_root_is_that_of_every_folder(tmp_path: Path, folder: str) -> None:
    composer = json.dumps({"autoload": {"psr-4": {"Acme\\": folder, "Out\\": "../", "Etc\\": "/etc"}}})
    house = app(tmp_path, {"composer.json": composer, "gate.yaml": "source: lib/{plugin}\n"}, {"lib/Shop/Cart.php": ""})
    assert found(house, "Shop.Cart").module == "Acme\\lib\\Shop"


@pytest.mark.parametrize("composer", ["", "{", "[]", '{"autoload": []}', '{"autoload": {"psr-4": []}}', "\xff"])
def test_a_composer_file_that_says_nothing_leaves_the_houses_own_namespaces(tmp_path: Path, composer: str) -> None:
    house = app(tmp_path, PHP, {"composer.json": composer.encode("latin-1")})
    assert found(house, "Demo.Greeter").module == "App\\Plugins\\Demo\\Services"


def test_the_apps_own_tools_come_before_those_of_the_system(tmp_path: Path) -> None:
    write(tmp_path, {"bin/phpunit": "#!/bin/sh\n"})
    (tmp_path / "bin/phpunit").chmod(0o755)
    app(tmp_path / "app", PHP)
    house = House.open(tmp_path / "app", search_path=str(tmp_path / "bin"))
    assert (house.app.interpreter, house.app.analyser) == (("php",), ())
    assert house.app.runner == (str(tmp_path / "bin/phpunit"),)
    write(tmp_path / "app", {"vendor/bin/phpstan": "", "vendor/bin/phpunit": ""})
    house = House.open(tmp_path / "app")
    assert house.app.analyser == (str(tmp_path / "app/vendor/bin/phpstan"),)
    assert house.app.runner == (str(tmp_path / "app/vendor/bin/phpunit"),)


def test_an_app_without_project_files_is_known_by_its_folders(tmp_path: Path) -> None:
    house = app(tmp_path, {name: text for name, text in PHP.items() if name != "composer.json"})
    assert house.settings.language == "php"


def test_an_app_of_two_languages_is_what_its_plugins_are(tmp_path: Path) -> None:
    assert app(tmp_path, PHP, {"pyproject.toml": ""}).settings.language == "php"
