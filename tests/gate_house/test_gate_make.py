from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from trees import PHP, PYTHON, app, everything, found, needs_php, write

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate import scaffold
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.gate.plan import Unmade
from foundry_implementation_actor.gate.scaffold import Made, make
from foundry_implementation_actor.judges.bodies import body_judges


def made(house: House, kind: str, plugin: str, name: str = "") -> list[str]:
    done = make(house, kind, plugin, name)
    assert isinstance(done, Made), done
    assert done.written
    assert all((house.root / path).read_bytes() == text for path, text in done.files.items())
    return list(done.files)


def unmade(house: House, kind: str, plugin: str, name: str = "") -> str:
    before = everything(house.root)
    done = make(house, kind, plugin, name)
    assert isinstance(done, Unmade), done
    assert everything(house.root) == before
    return done.because


@pytest.fixture
def python(tmp_path: Path) -> House:
    return app(tmp_path, PYTHON)


@pytest.fixture
def php(tmp_path: Path) -> House:
    return app(tmp_path, PHP)


@pytest.mark.parametrize("kind", ["service", "value-object", "interface", "protocol", "class"])
def test_a_class_is_made_where_the_house_finds_it(python: House, kind: str) -> None:
    assert made(python, kind, "orders", "HTTPGateway") == ["src/plugins/orders/http_gateway.py"]
    assert found(python, "orders.HTTPGateway").module == "plugins.orders.http_gateway"


def test_a_test_is_made_for_a_class_and_is_its_own_test(python: House) -> None:
    made(python, "service", "orders", "Cart")
    assert made(python, "test", "orders", "Cart") == ["tests/plugins/orders/test_cart.py"]
    assert found(python, "orders.Cart").own_test == "tests/plugins/orders/test_cart.py"
    assert found(python, "orders.TestCart").is_test


def test_a_plugin_is_made_with_the_packages_above_it(tmp_path: Path) -> None:
    house = app(tmp_path, {"pyproject.toml": ""})
    assert made(house, "plugin", "billing") == ["src/plugins/__init__.py", "src/plugins/billing/__init__.py"]
    assert made(house, "plugin", "orders") == ["src/plugins/orders/__init__.py"]
    assert house.plugins() == ["billing", "orders"]
    assert made(house, "interface", "billing", "Ledger") == ["src/plugins/billing/ledger.py"]


def verdicts(house: House, name: str) -> dict[str, Verdict]:
    """What the gate's own judges say of a file as it stands."""
    place = found(house, name)
    content = (house.root / place.path).read_bytes()
    candidate, judged = Candidate(place, content, content), house.app_for(place.target.plugin)
    with isolated(judged, [candidate]) as run:
        said = [judge.judge(judged, candidate, run) for judge in body_judges(judged.language)]
    return {verdict.judge: verdict for verdict in said}


def test_what_is_made_in_python_passes_the_gates_judges(tmp_path: Path) -> None:
    house = app(tmp_path, {"pyproject.toml": ""})
    made(house, "plugin", "shop")
    for kind, name in (("service", "Cart"), ("value-object", "Price"), ("interface", "Pays"), ("test", "Cart")):
        made(house, kind, "shop", name)
    said = {unit: verdicts(house, f"shop.{unit}") for unit in ("Cart", "Price", "Pays", "TestCart")}
    assert {said[unit][judge].outcome for unit in said for judge in ("syntax", "shape", "linkage")} == {Outcome.PASSED}
    assert "asks nothing yet" in said["Cart"]["own-test"].evidence


@pytest.mark.parametrize("name", ["Json", "Sitecustomize", "Usercustomize", "Pytest", "Typing"])
def test_a_module_that_would_come_before_one_of_the_judges_is_not_made(tmp_path: Path, name: str) -> None:
    flat = {"gate.yaml": "language: python\nsource: app\ntests: tests\nimports: [app]\n", "app/__init__.py": ""}
    assert f"would be the module {name.lower()}" in unmade(app(tmp_path, flat), "service", "app", name)
    packages = {"gate.yaml": "language: python\nsource: src/{plugin}\ntests: tests\n", "src/shop/__init__.py": ""}
    house = app(tmp_path / "other", packages)
    assert f"would be the module {name.lower()}" in unmade(house, "plugin", name.lower())
    assert made(house, "service", "shop", name) == [f"src/shop/{name.lower()}.py"]


@needs_php
def test_what_is_made_in_php_passes_the_gates_judges(tmp_path: Path) -> None:
    house = app(tmp_path, PHP, {"vendor/autoload.php": Path(__file__).with_name("autoload.php").read_text()})
    made(house, "plugin", "Shop")
    for kind, name in (("service", "Cart"), ("value-object", "Price"), ("interface", "Pays"), ("test", "Cart")):
        made(house, kind, "Shop", name)
    said = {unit: verdicts(house, f"Shop.{unit}") for unit in ("Cart", "Price", "Pays", "CartTest")}
    asked = ("syntax", "strict-types", "shape", "linkage")
    assert {said[unit][judge].outcome for unit in said for judge in asked} == {Outcome.PASSED}
    assert "asks nothing yet" in said["Cart"]["own-test"].evidence


@needs_php
def test_what_is_made_in_php_runs_under_its_own_test(tmp_path: Path) -> None:
    autoload = Path(__file__).with_name("autoload.php").read_text()
    house = app(tmp_path, PHP, {"vendor/autoload.php": autoload})
    assert made(house, "plugin", "Shop") == ["src/Plugins/Shop/.gitkeep"]
    assert made(house, "service", "Shop", "Cart") == ["src/Plugins/Shop/Services/Cart.php"]
    assert made(house, "value-object", "Shop", "Price") == ["src/Plugins/Shop/Models/Price.php"]
    assert made(house, "interface", "Shop", "Pays") == ["src/Plugins/Shop/Contracts/Pays.php"]
    for name in ("Cart", "Price", "Pays"):
        assert made(house, "test", "Shop", name) == [f"tests/Plugins/Shop/{name}Test.php"]
        assert found(house, f"Shop.{name}").own_test == f"tests/Plugins/Shop/{name}Test.php"
    done = subprocess.run(
        [*house.app.runner, "--no-configuration", "--bootstrap", "vendor/autoload.php", "tests"],
        cwd=tmp_path, env=dict(house.app.environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "OK (3 tests, 3 assertions)" in done.stdout, done.stdout + done.stderr


@needs_php
@pytest.mark.parametrize("map_", [{"psr-4": {"Acme\\Tests\\": "spec/"}}, {}])
def test_a_php_test_is_php_though_its_folder_is_still_to_be_made(tmp_path: Path, map_: dict[str, object]) -> None:
    composer = {"autoload": {"psr-4": {"Acme\\": "lib/"}}, "autoload-dev": map_}
    settings = "source: lib/{plugin}\ntests: spec/{plugin}\n"
    house = app(tmp_path, {"composer.json": json.dumps(composer), "gate.yaml": settings})
    for kind, name in (("plugin", ""), ("service", "Account"), ("test", "Account")):
        paths = made(house, kind, "Bank", name)
    text = (tmp_path / paths[0]).read_text()
    assert ("namespace Acme\\Tests\\Bank;" in text) == bool(map_)
    assert "use Acme\\Bank\\Services\\Account;" in text
    done = subprocess.run(["php", "-n", "-l", paths[0]], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@needs_php
def test_what_is_made_in_php_is_php(php: House) -> None:
    for kind, name in (("service", "A"), ("value-object", "B"), ("interface", "C"), ("test", "A")):
        for path in made(php, kind, "Demo", name):
            done = subprocess.run(["php", "-n", "-l", path], cwd=php.root, capture_output=True, check=False)
            assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("kind", "plugin", "name", "because"),
    [
        ("service", "orders", "OrderService", "orders.OrderService is there already (src/plugins/orders/service.py)"),
        ("service", "orders", "Service", "src/plugins/orders/service.py is there already, and nothing is overwritten"),
        ("service", "order", "Cart", "did you mean orders?; make the plugin first"),
        ("plugin", "orders", "", "there is a plugin orders already (src/plugins/orders)"),
        ("test", "orders", "OrderService", "has its own test already (tests/plugins/orders/test_service.py)"),
        ("test", "orders", "Nothing", "cannot make a test for orders.Nothing: nothing in the plugin declares Nothing"),
        ("test", "orders", "test_service", "orders.test_service is a test itself"),
        ("service", "nothing", "Cart", "; it has orders"),
        ("service", "orders", "None", "None is a word of the language"),
        ("plugin", "import", "", "import is a word of the language"),
    ],
)
def test_nothing_is_overwritten_and_nothing_is_made_in_a_wrong_place(
    python: House, kind: str, plugin: str, name: str, because: str
) -> None:
    assert because in unmade(python, kind, plugin, name)


@pytest.mark.parametrize(
    ("kind", "plugin", "name", "said"),
    [
        ("plugin", "shop", "Shop", "name: a plugin has one name; leave out 'Shop'"),
        ("controller", "orders", "Cart", "kind: 'controller' is not a kind; make one of plugin, service, value-object"),
        ("service", "orders", "", "name: a service needs a name beside its plugin: the new class"),
        ("test", "orders", "", "name: a test needs a name beside its plugin: the class that it judges"),
        ("service", "orders", "../Cart", "name: '../Cart' is no bare identifier"),
        ("service", "orders", "1Cart", "name: '1Cart' is no bare identifier"),
        ("service", "../orders", "Cart", "plugin: '../orders' is no bare identifier"),
        ("plugin", "a/b", "", "plugin: 'a/b' is no bare identifier"),
    ],
)
def test_what_no_app_could_be_given_is_the_callers_mistake(
    python: House, kind: str, plugin: str, name: str, said: str
) -> None:
    before = everything(python.root)
    with pytest.raises(ActorError, match=re.escape(said)) as mistake:
        make(python, kind, plugin, name)
    assert mistake.value.code is Code.BAD_REQUEST
    assert everything(python.root) == before


@pytest.mark.parametrize("name", ["List", "string", "Match", "readonly", "__CLASS__", "Exit"])
def test_a_class_that_php_could_not_have_is_not_made(php: House, name: str) -> None:
    assert "is a word of the language" in unmade(php, "service", "Demo", name)


@needs_php
@pytest.mark.parametrize("name", ["Enum", "Resource", "From", "Date"])
def test_a_class_that_php_can_have_is_made(php: House, name: str) -> None:
    path = made(php, "service", "Demo", name)[0]
    assert subprocess.run(["php", "-n", "-l", path], cwd=php.root, capture_output=True, check=False).returncode == 0


def test_a_module_is_never_called_by_a_word_of_the_language(python: House) -> None:
    assert made(python, "service", "orders", "Import") == ["src/plugins/orders/import_.py"]


@pytest.mark.parametrize("taken", ["link", "dangling", "folder"])
def test_whatever_has_the_name_already_stays(python: House, taken: str) -> None:
    path = python.root / "src/plugins/orders/cart.py"
    if taken == "folder":
        path.mkdir()
    else:
        path.symlink_to("service.py" if taken == "link" else "nowhere")
    assert "src/plugins/orders/cart.py is there already" in unmade(python, "service", "orders", "Cart")


def test_a_dry_run_says_what_it_would_write_and_writes_nothing(python: House) -> None:
    before = everything(python.root)
    done = make(python, "service", "orders", "Cart", dry_run=True)
    assert isinstance(done, Made)
    assert not done.written
    assert list(done.files) == ["src/plugins/orders/cart.py"]
    assert b"class Cart:" in done.files["src/plugins/orders/cart.py"]
    assert everything(python.root) == before
    assert not (python.root / ".foundry").exists()


def test_a_plugin_that_the_settings_have_no_place_for_is_not_made(tmp_path: Path) -> None:
    house = app(tmp_path, {"pyproject.toml": "", "gate.yaml": "source: shop\ntests: tests\n", "shop/__init__.py": ""})
    assert "no place for a plugin billing" in unmade(house, "plugin", "billing")
    assert made(house, "service", "shop", "Cart") == ["shop/cart.py"]
    assert made(house, "test", "shop", "Cart") == ["tests/test_cart.py"]
    assert b"from shop.cart import Cart" in (tmp_path / "tests/test_cart.py").read_bytes()


def test_a_plugin_of_one_file_gets_no_further_file(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "gate.yaml": "plugins: {seven: seven.py}\n", "seven.py": "class Seven: ...\n"}
    assert "seven.py is not a folder" in unmade(app(tmp_path, files), "service", "seven", "Cart")


def test_a_make_that_cannot_write_its_second_file_leaves_nothing(tmp_path: Path) -> None:
    too_long = f"source: src/plugins/{'a' * 300}/{{plugin}}\n"
    house = app(tmp_path, {"pyproject.toml": "", "gate.yaml": too_long})
    before = everything(tmp_path)
    with pytest.raises(ActorError) as caught:
        make(house, "plugin", "orders")
    assert caught.value.code is Code.UNFIT
    assert everything(tmp_path) == before


_KILLED = """
import os, signal, sys
from pathlib import Path
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate import scaffold
from foundry_implementation_actor.gate.house import House

left = int(sys.argv[2])

def dying(call):
    def counted(*given, **named):
        global left
        call(*given, **named)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    return counted

scaffold.write_durably = dying(scaffold.write_durably)
scaffold._create = dying(scaffold._create)
os.link = dying(os.link)
os.fsync = dying(os.fsync)
scaffold.make(House.open(Path(sys.argv[1])), "plugin", "orders")
"""


@pytest.mark.parametrize("step", range(1, 12))
def test_what_a_killed_make_left_is_taken_away(tmp_path: Path, step: int) -> None:
    house = app(tmp_path, {"pyproject.toml": "", "keep/me.txt": "kept"})
    before = everything(tmp_path)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), str(step)], check=False)
    assert done.returncode in {0, -signal.SIGKILL}
    if done.returncode:
        scaffold.recover(tmp_path)
        assert everything(tmp_path) == before
        assert scaffold.recover(tmp_path) == []
        assert made(house, "plugin", "orders")
    assert house.plugins() == ["orders"]


def test_the_next_make_takes_away_what_a_killed_one_left(tmp_path: Path) -> None:
    house = app(tmp_path, {"pyproject.toml": ""})
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), "6"], check=False)
    assert made(house, "plugin", "billing")
    assert house.plugins() == ["billing"]


def test_a_file_that_somebody_wrote_into_since_is_left(tmp_path: Path) -> None:
    app(tmp_path, {"pyproject.toml": ""})
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), "6"], check=False)
    write(tmp_path, {"src/plugins/__init__.py": "MINE = 1\n"})
    scaffold.recover(tmp_path)
    assert everything(tmp_path)["src/plugins/__init__.py"] == b"MINE = 1\n"


def test_of_two_makes_at_once_one_makes_and_the_other_is_told(python: House) -> None:
    done: list[Made | Unmade] = []
    threads = [
        threading.Thread(target=lambda: done.append(make(python, "service", "orders", "Cart"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(one).__name__ for one in done) == ["Made", "Unmade", "Unmade", "Unmade"]


def test_an_app_whose_state_cannot_be_written_makes_nothing(python: House) -> None:
    (python.root / ".foundry").symlink_to("nowhere")
    with pytest.raises(ActorError) as caught:
        make(python, "service", "orders", "Cart")
    assert caught.value.code is Code.UNFIT
    assert not os.path.lexists(python.root / "src/plugins/orders/cart.py")
