from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import PYTHON, app, found, missing, write

from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.settings import HOUSES, MAX_BYTES
from foundry_implementation_actor.gate.settings_file import read_settings

WHOLE = """\
language: python
source: lib/{plugin}
tests: checks
plugins:
  shop: packages/shop/
  one: {source: lib/one.py, tests: checks/one}
imports: [lib, packages]
interpreter: [env/bin/python, -X, dev]
analyser: [tools/check, --fast]
runner: [python, -m, pytest, -p, "no:randomly"]
construct: [bin/build, "{class}"]
environment:
  DJANGO_SETTINGS_MODULE: shop.settings
  PORT: 8080
  DEBUG: true
test_names: ["{module}_test.py"]
own_tests:
  shop.cart: checks/test_everything.py
  shop.cart.Basket: checks/test_basket.py
probe_timeout_s: 5
test_timeout_s: 2.5
network: true
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    house = app(tmp_path, {"gate.yaml": WHOLE})
    read, judged = house.settings, house.app
    assert (read.source, read.tests, read.imports) == ("lib/{plugin}", "checks", ("lib", "packages"))
    assert read.plugins["shop"] == ("packages/shop", "checks")
    assert read.plugins["one"] == ("lib/one.py", "checks/one")
    assert judged.interpreter == (str(tmp_path / "env/bin/python"), "-X", "dev")
    assert judged.analyser == (str(tmp_path / "tools/check"), "--fast")
    assert judged.runner == ("python", "-m", "pytest", "-p", "no:randomly")
    assert judged.construct == (str(tmp_path / "bin/build"), "{class}")
    assert judged.environment["PORT"] == "8080"
    assert judged.environment["DEBUG"] == "true"
    assert judged.environment["PYTHONPATH"] == f"{tmp_path}/lib:{tmp_path}/packages"
    assert (judged.probe_timeout_s, judged.test_timeout_s, judged.network) == (5.0, 2.5, True)
    assert read.own_tests["shop.cart.Basket"] == "checks/test_basket.py"


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n", "\ufeff{}\n", "---\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    house = app(tmp_path, PYTHON, {"gate.yaml": text})
    assert house.settings == HOUSES["python"]


# A line of a file, and what is said of it.
BROKEN = [
    ("source: ../x", "1:9: source: '../x' has a part `..`"),
    ("source: /x", "1:9: source: '/x' is absolute"),
    ("source: src/{plugins}", "1:9: source: {plugins} is no placeholder here; write {plugin}"),
    ("source: src/x-{plugin}", "1:9: source: 'src/x-{plugin}' does not have `{plugin}` as one whole part"),
    ("source: '{plugin}/{plugin}'", "1:9: source: '{plugin}/{plugin}' does not have `{plugin}` as one"),
    ("source: my-package", "1:9: source: 'my-package' names no plugin; write `{plugin}` in it, or name the plugins"),
    ("source: .", "1:9: source: '.' names no plugin"),
    ("source: .git/x", "1:9: source: '.git/x' lies in git's own directory"),
    ("source: [src]", "1:9: source: must be a string, not a list"),
    ("source:", "1:8: source: must be a string, not null"),
    ("tests: ''", "1:8: tests: is empty"),
    ("language: ruby", "1:11: language: 'ruby' is not known; write `python` or `php`"),
    ("sources: src", "1:1: sources: is not a key; did you mean `source`?"),
    ("zzz: 1", "1:1: zzz: is not a key; the keys here are language, source"),
    ("imports: src", "1:10: imports: must be a list, not a string; write `[src]`"),
    ("imports: [src, ../x]", "1:16: imports[1]: '../x' has a part `..`"),
    ("runner: pytest -q", "1:9: runner: must be a list, not a string; write the command as a list"),
    ("runner: []", "1:9: runner: is empty"),
    ("runner: [pytest, 3]", "1:18: runner[1]: must be a string, not a number (3)"),
    ("environment: {A B: x}", "1:15: environment.'A B': 'A B' is no variable's name"),
    ("environment: {A: [x]}", "1:18: environment.A: must be a string, not a list"),
    ("environment: [A]", "1:14: environment: must be a mapping, not a list"),
    ("plugins: {a-b: src}", "1:11: plugins.'a-b': 'a-b' is no plugin's name"),
    ("plugins: {a: ../src}", "1:14: plugins.a: '../src' has a part `..`"),
    ("plugins: {a: {sources: x}}", "1:15: plugins.a.sources: is not a key; did you mean `source`?"),
    ("plugins: {a: {tests: x}}", "1:14: plugins.a.source: is missing"),
    ("plugins: {a: [x]}", "1:14: plugins.a: must be a mapping, not a list"),
    ("test_names: ['a/{module}.py']", "1:14: test_names[0]: 'a/{module}.py' is no file name"),
    ("test_names: ['{klass}.py']", "1:14: test_names[0]: {klass} is no placeholder here; write {class} or {module}"),
    ("own_tests: {a-b: x.py}", "1:13: own_tests.'a-b': 'a-b' is no module or class"),
    ("own_tests: {a.b: tests/}", "1:18: own_tests.'a.b': 'tests/' is a folder; write a file"),
    ("own_tests: {a.b: /x.py}", "1:18: own_tests.'a.b': '/x.py' is absolute"),
    ("namespaces: {1x: src}", "1:14: namespaces.1x: '1x' is no namespace"),
    ("probe_timeout_s: soon", "1:18: probe_timeout_s: must be a time, not a string; write seconds from 1 to 3600"),
    ("test_timeout_s: 0", "1:17: test_timeout_s: must be a time, not a number (0)"),
    ("test_timeout_s: -1", "1:17: test_timeout_s: must be a time, not a number (-1)"),
    ("test_timeout_s: .inf", "1:17: test_timeout_s: must be a time, not a number (.inf)"),
    ("test_timeout_s: 99999", "1:17: test_timeout_s: must be a time, not a number (99999)"),
    ("test_timeout_s: true", "1:17: test_timeout_s: must be a time, not a boolean (true)"),
    ("network: maybe", "1:10: network: must be true or false, not a string"),
    ("network: 1", "1:10: network: must be true or false, not a number (1)"),
    ("source: a\nsource: b", "2:1: source: the key is written twice (first in line 1)"),
    ("source: !x a", "1:9: source: the tag '!x' is not read"),
    ("- a", "1:1: must be a mapping, not a list"),
    ("x", "1:1: must be a mapping, not a string"),
    ("source: 'a", "1:9: not readable as YAML"),
    ("source: *a", "1:9: the alias *a names no anchor"),
    ("\tsource: a", "1:1: not readable as YAML"),
    ("source: a\x07b", "1:10: a control character"),
    ('source: "a\\0b"', "1:9: source: holds the character '\\x00'"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN, ids=[said[:50] for _, said in BROKEN])
def test_a_fault_is_named_with_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, {**PYTHON, "gate.yaml": text + "\n"})
    with pytest.raises(ConfigError) as caught:
        House.open(tmp_path)
    assert f"{tmp_path}/gate.yaml:{said}" in str(caught.value)


def test_all_faults_are_named_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, {**PYTHON, "gate.yaml": "network: x\nrunner: 1\nzzz: 1\nsource: ..\nnetwork: y\n"})
    with pytest.raises(ConfigError) as caught:
        House.open(tmp_path)
    lines = [line.removeprefix(f"{tmp_path}/gate.yaml:").split(":")[0] for line in str(caught.value).splitlines()]
    assert lines == ["2", "3", "4", "5", "5"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"source: \xff\n", "gate.yaml:1:9: byte 0xff is not UTF-8"),
        (b"\xff\xfes\x00", "gate.yaml:1:1: the file is UTF-16; save it as UTF-8"),
        (b"#" * (MAX_BYTES + 1), "gate.yaml: larger than 256 KiB"),
        (b"a: &a [1, 1]\nb: &b [*a, *a]\n" + b"c: [*b, *b]\n" * 5_000, "more than 10,000 values"),
        (b"[" * 100_000, "nested deeper than 32 levels"),
    ],
)
def test_a_file_that_is_no_settings_file_is_an_error_and_no_traceback(
    tmp_path: Path, content: bytes, said: str
) -> None:
    write(tmp_path, {**PYTHON, "gate.yaml": content})
    with pytest.raises(ConfigError) as caught:
        House.open(tmp_path)
    assert said in str(caught.value)


def test_without_a_project_file_the_language_has_to_be_said(tmp_path: Path) -> None:
    write(tmp_path, {"gate.yaml": "source: lib/{plugin}\n"})
    with pytest.raises(ConfigError, match=r"gate\.yaml:1:1: language: is missing; write `python` or `php`"):
        House.open(tmp_path)


def test_two_project_files_and_no_plugins_ask_for_the_language(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "", "composer.json": "{}"})
    with pytest.raises(ConfigError, match="language: is missing"):
        House.open(tmp_path)


def test_a_source_layout_with_a_package_a_plugin(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "gate.yaml": "source: src/{plugin}\ntests: tests\n"}
    modules = {"src/shop/cart.py": "class Cart: ...", "tests/unit/test_cart.py": "def test_it(): ..."}
    house = app(tmp_path, files, modules)
    place = found(house, "shop.Cart")
    assert (place.module, place.own_test) == ("shop.cart", "tests/unit/test_cart.py")
    assert house.plugins() == ["shop"]
    assert found(house, "shop.test_cart").module == "tests.unit.test_cart"


def test_a_flat_layout_with_one_package(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "gate.yaml": "source: shop\ntests: shop/tests\n"}
    modules = {"shop/_cart.py": "class Cart: ...", "shop/tests/test_cart.py": "class TestCart: ..."}
    house = app(tmp_path, files, modules)
    place = found(house, "shop.Cart")
    assert (place.path, place.module, place.own_test) == ("shop/_cart.py", "shop._cart", "shop/tests/test_cart.py")
    assert found(house, "shop.TestCart").is_test
    assert house.plugins() == ["shop"]
    assert missing(house, "other.Cart").startswith("no plugin other in this app")


def test_a_package_that_is_one_module(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "gate.yaml": "plugins: {seven: seven.py}\ntests: .\n"}
    house = app(tmp_path, files, {"seven.py": "class Seven: ...", "test_seven.py": "def test_it(): ..."})
    place = found(house, "seven.Seven")
    assert (place.path, place.module, place.own_test) == ("seven.py", "seven", "test_seven.py")


def test_a_package_that_is_the_apps_root(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "gate.yaml": "plugins: {tool: .}\ntests: tests\n"}
    house = app(tmp_path, files, {"tool.py": "class Tool: ...", "tests/test_tool.py": "class Tool: ..."})
    place = found(house, "tool.Tool")
    assert (place.path, place.module, place.own_test) == ("tool.py", "tool", "tests/test_tool.py")
    assert house.plugins() == ["tool"]


def test_a_table_of_plugins_beside_the_houses_own(tmp_path: Path) -> None:
    house = app(
        tmp_path,
        PYTHON,
        {"gate.yaml": "plugins: {core: core}\nimports: [src, .]\n", "core/run.py": "class Run: ..."},
    )
    assert found(house, "core.Run").module == "core.run"
    assert found(house, "orders.Line").module == "plugins.orders.service"
    assert house.plugins() == ["core", "orders"]


def test_a_test_is_named_for_a_module_and_for_a_class(tmp_path: Path) -> None:
    own = "own_tests:\n  plugins.orders.service: tests/all.py\n  plugins.orders.service.Line: tests/line.py\n"
    house = app(tmp_path, PYTHON, {"gate.yaml": own, "tests/line.py": ""})
    assert found(house, "orders.Line").own_test == "tests/line.py"
    assert "names tests/all.py as the own test of orders.OrderService" in missing(house, "orders.OrderService")


def test_tests_called_in_another_way(tmp_path: Path) -> None:
    house = app(
        tmp_path,
        PYTHON,
        {"gate.yaml": "test_names: ['{module}_test.py']\n", "tests/plugins/orders/pricing_test.py": ""},
    )
    write(tmp_path, {"src/plugins/orders/pricing.py": "class Price: ..."})
    assert found(house, "orders.Price").own_test == "tests/plugins/orders/pricing_test.py"
    assert found(house, "orders.Line").own_test == ""


def test_a_php_app_of_its_own_layout(tmp_path: Path) -> None:
    own = "source: lib/{plugin}/src\ntests: lib/{plugin}/tests\nnamespaces: {'Acme\\': lib/}\n"
    files = {"composer.json": "{}", "gate.yaml": own}
    house = app(tmp_path, files, {"lib/Shop/src/Cart.php": "<?php", "lib/Shop/tests/CartTest.php": "<?php"})
    place = found(house, "Shop.Cart")
    assert (place.module, place.own_test) == ("Acme\\Shop\\src", "lib/Shop/tests/CartTest.php")


def test_a_settings_file_that_leads_out_of_the_app_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"outside.yaml": "network: true\n"})
    house = app(tmp_path / "app", PYTHON)
    (tmp_path / "app/gate.yaml").symlink_to(tmp_path / "outside.yaml")
    assert not House.open(tmp_path / "app").settings.network
    assert house.settings == House.open(tmp_path / "app").settings


LIKE_SETTINGS = st.lists(st.sampled_from([text for text, _ in BROKEN] + WHOLE.splitlines()), max_size=6).map("\n".join)


@settings(deadline=None)
@given(text=st.text(max_size=60) | LIKE_SETTINGS)
def test_any_text_is_settings_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    root.mkdir(exist_ok=True)
    content, source = text.encode("utf-8", "surrogatepass"), f"{root}/gate.yaml"
    try:
        said = source if read_settings(content, source, HOUSES["python"]) else ""
    except ConfigError as error:
        said = str(error)
    assert said.startswith(f"{root}/gate.yaml")
