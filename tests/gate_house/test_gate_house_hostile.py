"""Trees that nobody made to be searched: links, pipes, loops, folders that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import PHP, PYTHON, app, found, missing, write

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.tree import MAX_BYTES, MAX_DEPTH, Look
from foundry_implementation_actor.system.files import remove_tree


def test_a_file_that_is_a_link_is_not_looked_at(tmp_path: Path) -> None:
    house = app(tmp_path / "app", PYTHON)
    write(tmp_path, {"outside.py": "class Outside: ..."})
    (house.root / "src/plugins/orders/outside.py").symlink_to(tmp_path / "outside.py")
    (house.root / "src/plugins/orders/inside.py").symlink_to("service.py")
    assert "nothing in the plugin declares Outside" in missing(house, "orders.Outside")
    assert found(house, "orders.OrderService").path == "src/plugins/orders/service.py"


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    house = app(tmp_path / "app", PYTHON)
    write(tmp_path, {"outside/module.py": "class Outside: ..."})
    (house.root / "src/plugins/orders/linked").symlink_to(tmp_path / "outside")
    (house.root / "src/plugins/orders/loop").symlink_to(".")
    assert "nothing in the plugin declares Outside" in missing(house, "orders.Outside")
    assert found(house, "orders.OrderService")


@pytest.mark.parametrize("linked", ["src/plugins/orders", "src/plugins", "src", "tests/plugins/orders", "tests"])
def test_a_plugin_behind_a_link_is_refused(tmp_path: Path, linked: str) -> None:
    house = app(tmp_path / "app", PYTHON)
    (house.root / linked).rename(tmp_path / "moved")
    (house.root / linked).symlink_to(tmp_path / "moved")
    with pytest.raises(ActorError, match=r"orders: is or lies behind a link; the gate follows no link") as caught:
        house.find(Target("orders", "Nothing"))
    assert caught.value.code is Code.BAD_REQUEST


def test_in_php_a_class_file_that_is_a_link_is_not_found(tmp_path: Path) -> None:
    house = app(tmp_path, PHP)
    (tmp_path / "src/Plugins/Demo/Linked.php").symlink_to("Services/Greeter.php")
    (tmp_path / "src/Plugins/Demo/Again").symlink_to("Services")
    assert "nothing in the plugin declares Linked" in missing(house, "Demo.Linked")
    assert found(house, "Demo.Greeter").path == "src/Plugins/Demo/Services/Greeter.php"


def test_pipes_sockets_and_folders_with_a_modules_name_are_passed_over(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/orders/folder.py/inner.txt": ""})
    os.mkfifo(tmp_path / "src/plugins/orders/pipe.py")
    assert found(house, "orders.OrderService")


def test_names_that_no_module_can_have_are_passed_over(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {f"src/plugins/orders/{name}.py": "class Line: ..." for name in ("a b", "a-b", "1")})
    write(tmp_path, {f"src/plugins/orders/{name}/x.py": "class Line: ..." for name in (".hidden", "a-b", "x.y")})
    (tmp_path / "src/plugins/orders" / os.fsdecode(b"\xff\xfe.py")).write_text("class Line: ...")
    assert found(house, "orders.Line").path == "src/plugins/orders/service.py"


@pytest.mark.parametrize(
    "content",
    [
        b"class Thing: ...\n\x00",
        b"class Thing: ...\nx = " + b"(" * 5_000,
        b"class Thing: ...\nx = " + b"-" * 50_000 + b"1",
        b"\xff\xfeclass Thing: ...",
        b"# coding: no-such\nclass Thing: ...",
        b"class Thing: ...\n\xe9 = 1",
    ],
)
def test_a_module_that_cannot_be_parsed_breaks_nothing(tmp_path: Path, content: bytes) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/orders/thing.py": content})
    house.find(Target("orders", "Thing"))
    assert found(house, "orders.OrderService")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    with (tmp_path / "src/plugins/orders/huge.py").open("wb") as file:
        file.write(b"class Huge: ...\n")
        file.truncate(MAX_BYTES * 100)
    assert "nothing in the plugin declares Huge" in missing(house, "orders.Huge")


def test_folders_in_folders_without_end_are_left_at_some_depth(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    descriptor = os.open(tmp_path / "src/plugins/orders", os.O_RDONLY)
    for _ in range(MAX_DEPTH * 20):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    try:
        assert found(house, "orders.OrderService")
    finally:
        remove_tree(tmp_path)  # deeper than pytest's own clean-up can go


def test_a_folder_that_cannot_be_opened_ends_the_search(tmp_path: Path) -> None:
    """Root may read every folder, so that an open that is refused is a name that is too long."""
    look = Look(tmp_path, "x" * 300, lambda _: True, lambda _: True)
    with pytest.raises(ActorError, match="cannot be searched") as caught:
        list(look.files())
    assert caught.value.code is Code.UNFIT


def test_only_the_plugins_own_folders_are_looked_through(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    write(tmp_path, {f"src/plugins/other/m{number}.py": "class Line: ..." for number in range(3)})
    os.mkfifo(tmp_path / "src/plugins/other/pipe")
    looked = [file.path for file in Look(tmp_path, "src/plugins/orders", lambda _: True, lambda _: True).files()]
    assert looked == [f"src/plugins/orders/{name}.py" for name in ("__init__", "pricing", "service")]
    assert found(house, "orders.Line")


def test_a_plugin_that_is_a_file_has_no_classes(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON, {"src/plugins/flat": "class Line: ..."})
    assert "nothing in the plugin declares Line" in missing(house, "flat.Line")


def test_the_same_file_under_two_names_is_two_files(tmp_path: Path) -> None:
    house = app(tmp_path, PYTHON)
    os.link(tmp_path / "src/plugins/orders/service.py", tmp_path / "src/plugins/orders/second.py")
    assert "more than one file" in missing(house, "orders.Line")


def test_the_app_may_lie_behind_a_link_while_nothing_in_it_does(tmp_path: Path) -> None:
    app(tmp_path / "real", PYTHON)
    (tmp_path / "link").symlink_to("real")
    assert found(House.open(tmp_path / "link/src"), "orders.Line").path == "src/plugins/orders/service.py"
