from __future__ import annotations

import sys
from pathlib import Path

import pytest
from trees import PYTHON, app, found, missing, write

from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.house import House, Missing, unscaffolded
from foundry_implementation_actor.gate.house_python import snake_case


def test_a_class_is_found_by_the_module_that_declares_it(tmp_path: Path) -> None:
    place = found(app(tmp_path, PYTHON), "orders.OrderService")
    assert (place.path, place.module) == ("src/plugins/orders/service.py", "plugins.orders.service")
    assert not place.is_test


def test_a_class_in_a_folder_of_the_plugin_has_that_folder_in_its_module(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/orders/money/__init__.py": "class Money: ..."})
    assert found(house, "orders.Money").module == "plugins.orders.money"


@pytest.mark.parametrize(
    "text",
    [
        "@decorated\nclass Thing: ...",
        "class Thing(Base, metaclass=Meta):\n    ...",
        "class \\\n  Thing: ...",
        "\ufeffclass Thing: ...",
        "# -*- coding: latin-1 -*-\n# \xe9\nclass Thing: ...".encode("latin-1"),
        "x = 1; \r\nclass Thing: pass\r\n",
        "PATTERN = '\\d'\nclass Thing: pass\n",
    ],
)
def test_however_a_class_is_written_at_top_level_it_is_found(tmp_path: Path, text: str | bytes) -> None:
    assert found(app(tmp_path, PYTHON, {"src/plugins/orders/thing.py": text}), "orders.Thing").own_test == ""


@pytest.mark.parametrize(
    "text",
    [
        "'''\nclass Thing: ...\n'''",
        "# class Thing: ...",
        "def make():\n    class Thing: ...\n",
        "class Other:\n    class Thing: ...\n",
        "Thing = type('Thing', (), {})",
        "from elsewhere import Thing",
        "class Things: ...",
        "class thing: ...",
        "class \u0422hing: ...",
    ],
)
def test_what_only_looks_like_the_class_is_not_found(tmp_path: Path, text: str) -> None:
    message = missing(app(tmp_path, PYTHON, {"src/plugins/orders/thing.py": text}), "orders.Thing")
    assert message.startswith(unscaffolded("orders", "Thing", "implement"))


@pytest.mark.parametrize("outer", ["if True", "try", "with open(__file__)"])
def test_a_class_below_a_condition_is_named_but_cannot_be_landed(tmp_path: Path, outer: str) -> None:
    text = f"\n{outer}:\n    class Thing: ...\n" + ("finally:\n    pass\n" if outer == "try" else "")
    message = missing(app(tmp_path, PYTHON, {"src/plugins/orders/thing.py": text}), "orders.Thing")
    assert message.startswith("src/plugins/orders/thing.py: line 3 declares Thing, but below")


def test_a_module_that_is_broken_still_holds_its_class(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/orders/thing.py": "class Thing:\n    def x(:\n"})
    assert found(house, "orders.Thing").path == "src/plugins/orders/thing.py"


def test_two_modules_with_one_class_are_refused_naming_both(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/orders/a/again.py": "class Line: ..."})
    message = missing(house, "orders.Line")
    assert message.startswith("orders.Line stands for more than one file: ")
    assert "src/plugins/orders/a/again.py and src/plugins/orders/service.py" in message


def test_the_same_class_in_another_plugin_is_another_class(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/billing/line.py": "class Line: ..."})
    assert found(house, "orders.Line").path == "src/plugins/orders/service.py"
    assert found(house, "billing.Line").path == "src/plugins/billing/line.py"


def test_the_own_test_of_the_class_comes_before_that_of_the_module(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    assert found(house, "orders.OrderService").own_test == "tests/plugins/orders/test_service.py"
    write(tmp_path, {"tests/plugins/orders/deep/test_order_service.py": "def test_it(): ..."})
    assert found(house, "orders.OrderService").own_test == "tests/plugins/orders/deep/test_order_service.py"
    assert found(house, "orders.Line").own_test == "tests/plugins/orders/test_service.py"


def test_two_files_that_could_be_the_own_test_are_refused_naming_both(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"tests/plugins/orders/b/test_service.py": ""})
    message = missing(house, "orders.Line")
    assert "tests/plugins/orders/b/test_service.py and tests/plugins/orders/test_service.py" in message


@pytest.mark.parametrize(
    ("class_", "snake"),
    [
        ("OrderService", "order_service"),
        ("HTTPServer", "http_server"),
        ("Line", "line"),
        ("A", "a"),
        ("V2Order", "v2_order"),
        ("already_snake", "already_snake"),
        ("_Private", "_private"),
    ],
)
def test_a_class_name_in_snake_case(class_: str, snake: str) -> None:
    assert snake_case(class_) == snake


def test_a_test_module_of_functions_is_named_by_its_module(tmp_path: Path) -> None:
    place = found(app(tmp_path, PYTHON), "orders.test_service")
    assert (place.path, place.module, place.own_test) == (
        "tests/plugins/orders/test_service.py", "tests.plugins.orders.test_service", "",
    )  # fmt: skip
    assert place.is_test


def test_a_test_module_with_a_test_class_is_named_by_that_class(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"tests/plugins/orders/test_line.py": "class TestLine:\n    def test_it(self): ..."})
    assert found(house, "orders.TestLine").is_test
    assert missing(house, "orders.test_line").endswith(
        "test_line is named by its test class: TestLine; the gate lands what a module declares plainly"
    )


def test_a_class_of_the_sources_comes_before_one_of_the_tests(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"tests/plugins/orders/test_line.py": "class Line: ..."})
    assert not found(house, "orders.Line").is_test


def test_nothing_that_declares_it_leads_to_make_and_to_what_is_near(tmp_path: Path) -> None:
    place = app(tmp_path, PYTHON).find(Target("orders", "OrderServic"), "edit")
    assert isinstance(place, Missing)
    assert place.unmade
    assert "cannot edit orders.OrderServic" in place.message
    assert "`make`" in place.message
    assert "did you mean OrderService?" in place.message


def test_an_unknown_plugin_leads_to_those_there_are(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    assert missing(house, "order.Line").endswith("did you mean orders?")
    assert house.plugins() == ["orders"]


@pytest.mark.parametrize(
    "name",
    ["../orders", "orders/..", ".", "..", "", "a b", "a\n", "src/plugins/orders", "日本", "o\0", "-x", "1a", "a.b"],
)
def test_nothing_shaped_like_a_path_is_a_plugin_or_a_class(tmp_path: Path, name: str) -> None:
    house = app(tmp_path, PYTHON)
    for target in (Target(name, "OrderService"), Target("orders", name)):
        place = house.find(target)
        assert isinstance(place, Missing)
        assert "no bare name" in place.message
        assert not place.unmade


@pytest.mark.parametrize("name", ["Orders", "ORDERS", "orderS"])
def test_a_plugin_is_found_in_its_own_case_only(tmp_path: Path, name: str) -> None:
    assert missing(app(tmp_path, PYTHON), f"{name}.OrderService").startswith(f"no plugin {name} in this app")


def test_the_app_is_found_from_a_folder_inside(tmp_path: Path) -> None:
    app(tmp_path, PYTHON)
    house = House.open(tmp_path / "src/plugins/orders")
    assert house.root == tmp_path.resolve()
    with pytest.raises(ActorError, match=r"no app here \(none of gate.yaml, pyproject.toml"):
        House.open(tmp_path / "src/plugins/orders", upward=False)


def test_a_root_behind_a_link_is_its_real_place(tmp_path: Path) -> None:
    app(tmp_path / "real", PYTHON)
    (tmp_path / "link").symlink_to("real")
    assert House.open(tmp_path / "link").root == (tmp_path / "real").resolve()


def test_a_folder_that_is_no_app_says_what_an_app_is(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match=r"write a gate\.yaml at its root"):
        House.open(tmp_path)
    with pytest.raises(ActorError, match="is no folder"):
        House.open(tmp_path / "nowhere")


def test_the_app_knows_its_interpreter_and_where_modules_are_imported_from(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    assert house.app.interpreter == (sys.executable,)
    assert house.app.environment["PYTHONPATH"] == str(tmp_path / "src")
    assert (house.app.source, house.app.tests) == ("src/plugins", "tests/plugins")
    assert house.app_for("orders").source == "src/plugins/orders"


def test_an_environment_of_the_app_is_its_interpreter(tmp_path: Path) -> None:
    own = tmp_path / ".venv/bin/python"
    write(tmp_path, {".venv/bin/python": "#!/bin/sh\n"})
    own.chmod(0o755)
    assert app(tmp_path, PYTHON).app.interpreter == (str(own),)
