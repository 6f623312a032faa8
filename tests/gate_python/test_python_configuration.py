"""Where the app's own configuration breaks pytest, the body is unjudged; where it asks for a plugin, it gets it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from python_house import CLEAN, SERVICE, SERVICE_TEST, PythonHouse

from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.domain.verdict import Outcome

GOOD = CLEAN[1].read_text()
FAKE = GOOD.replace('order.status = "cancelled"\n        return True', "return False  # cancelled")
IMPORT = "from plugins.orders.service import OrderService\n"
FROM_SRC = "import sys\n\nsys.path.insert(0, 'src')\n"
BROKEN = "pytest is broken by the app's configuration: "
AS_BEFORE = "so it is of the text that stands too"


def configure(house: PythonHouse, settings: str = "", conftest: str = "") -> None:
    """Give the app these settings of pytest and this conftest."""
    house.write("pyproject.toml", f"[tool.pytest.ini_options]\n{settings}\n")
    if conftest:
        house.write("tests/conftest.py", conftest)


def install(house: PythonHouse, text: str) -> None:
    """Install a plugin of pytest that is loaded by itself, as `gate-sample`."""
    house.write("src/gate_sample_plugin.py", text)
    house.write("src/gate_sample-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: gate-sample\nVersion: 1\n")
    house.write("src/gate_sample-1.dist-info/entry_points.txt", "[pytest11]\ngate_sample = gate_sample_plugin\n")


def ask_more(house: PythonHouse, more: str) -> None:
    """Let the service's own test ask one thing more."""
    house.write(SERVICE_TEST, (house.root / SERVICE_TEST).read_text() + more)


WARNS = "import warnings\n\n\ndef pytest_collection_modifyitems():\n    warnings.warn('old hook', DeprecationWarning)\n"


@pytest.mark.parametrize(
    ("settings", "conftest", "told"),
    [
        ('addopts = "--cov=src"', "", "unrecognized arguments: --cov=src"),
        ('addopts = "-p no_such_plugin"', "", 'Error importing plugin "no_such_plugin"'),
        ('required_plugins = "pytest-no-such"', "", "Missing required plugins: pytest-no-such"),
        ('minversion = "99"', "", "'minversion' requires pytest-99"),
        ("", "raise ValueError('no database')\n", "ValueError: no database (from "),
        ("", "raise SystemExit('set DATABASE_URL')\n", "SystemExit: set DATABASE_URL"),
        ("", "pytest_plugins = ['no_such_plugin']\n", 'Error importing plugin "no_such_plugin"'),
        ('filterwarnings = ["error"]', WARNS, "DeprecationWarning: old hook"),
        ("", "def pytest_sessionfinish():\n    open('out.html', 'w')\n", "Read-only file system: 'out.html'"),
        ("", "def pytest_unconfigure():\n    open('out.html', 'w')\n", "Read-only file system: 'out.html'"),
    ],
)
def test_what_breaks_pytest_under_the_text_that_stands_too_leaves_the_body_unjudged(
    settings: str, conftest: str, told: str, house: PythonHouse
) -> None:
    configure(house, settings, conftest)
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, verdict.evidence) == (Outcome.UNJUDGED, AS_BEFORE)
    assert verdict.cause.startswith(BROKEN)
    assert told in verdict.cause


def test_a_plugin_that_breaks_before_each_test_leaves_the_body_unjudged(house: PythonHouse) -> None:
    raises = "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef docker():\n    raise ConnectionError('no docker')\n"
    house.write("src/there/site-packages/docks.py", raises)
    configure(
        house, conftest="import sys\n\nsys.path.insert(0, 'src/there/site-packages')\npytest_plugins = ['docks']\n"
    )
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert f"{BROKEN}ConnectionError: no docker ({SERVICE_TEST}::" in verdict.cause


def test_a_mark_that_no_plugin_knows_where_marks_are_strict_leaves_the_body_unjudged(house: PythonHouse) -> None:
    configure(house, 'addopts = "--strict-markers"')
    ask_more(house, "\n\nimport pytest\n\n\n@pytest.mark.no_such\ndef test_more(): ...\n")
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, verdict.cause) == (
        Outcome.UNJUDGED, "the test needs a plugin of pytest that is not installed: mark 'no_such' is not known",
    )  # fmt: skip


@pytest.mark.parametrize("body", [GOOD, "", f"{GOOD}\nOrderService.also = None\n"])
def test_a_conftest_that_breaks_in_what_a_scaffold_lacks_stays_red_while_the_body_lacks_it(
    body: str, house: PythonHouse
) -> None:
    configure(house, conftest=f"{FROM_SRC}{IMPORT}\nOrderService.also\n")
    expected = Outcome.PASSED if "also" in body else Outcome.REFUSED
    assert house.judge("own-test", body).outcome is expected


def test_a_conftest_that_breaks_in_the_body_as_it_did_in_the_one_before_is_no_fault_of_it(house: PythonHouse) -> None:
    needs = f"import os\n\nURL = os.environ['NO_SUCH_URL']\n{GOOD.partition(chr(10))[2]}"
    house.write(SERVICE, needs)
    configure(house, conftest=FROM_SRC + IMPORT)
    assert house.judge("own-test", f"{needs}\n").outcome is Outcome.UNJUDGED
    verdict = house.judge("own-test", needs.replace("NO_SUCH_URL", "NO_OTHER_URL"))
    assert verdict.outcome is Outcome.REFUSED
    assert f"{SERVICE} had a part in it" in str(verdict.findings[0])


def test_a_service_that_the_host_lacks_keeps_a_test_red_and_the_answer_says_that_it_was_so_before(
    house: PythonHouse,
) -> None:
    asks = "import pytest, socket\n\n\n@pytest.fixture(autouse=True)\ndef db():\n    socket.create_connection(HERE)\n"
    asks = asks.replace("HERE", "('127.0.0.1', 1)")
    configure(house, conftest=asks)
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.REFUSED
    assert "ConnectionRefusedError" in str(verdict.findings[0])
    assert "2 of the failures end in the same words under the text that stands" in verdict.evidence


ACTS_UNASKED = "import os\n\n\ndef pytest_configure():\n    os.environ['GATE_SAMPLE'] = '42'\n"
NEEDS_IT = "\n\ndef test_more():\n    import os\n\n    assert os.environ['GATE_SAMPLE'] == '42'\n"
HAS_AN_OPTION = "def pytest_addoption(parser):\n    parser.addoption('--gate-sample')\n"
HAS_A_SETTING = f"def pytest_addoption(parser):\n    parser.addini('gate_sample', '')\n\n\n{ACTS_UNASKED}"
HAS_A_MARK = "def pytest_configure(config):\n    config.addinivalue_line('markers', 'gifted: has a gift')\n"
BEARS_IT = "\n\nimport pytest\n\n\n@pytest.mark.gifted\ndef test_more(): ...\n"


@pytest.mark.parametrize(
    ("settings", "plugin", "more"),
    [
        ('required_plugins = "gate-sample"', "", ""),
        ('addopts = "--gate-sample=1"', HAS_AN_OPTION, ""),
        ('addopts = "-p gate_sample"', "", ""),
        ("", ACTS_UNASKED, NEEDS_IT),
        ('gate_sample = "1"', HAS_A_SETTING, NEEDS_IT),
        ('addopts = "--strict-markers"', HAS_A_MARK, BEARS_IT),
    ],
)
def test_a_plugin_that_is_installed_and_needed_is_there(
    settings: str, plugin: str, more: str, house: PythonHouse
) -> None:
    install(house, plugin)
    configure(house, settings)
    ask_more(house, more)
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_a_body_that_is_red_with_a_plugin_and_without_is_refused(house: PythonHouse) -> None:
    install(house, HAS_A_SETTING)
    configure(house, 'gate_sample = "1"')
    ask_more(house, NEEDS_IT)
    verdict = house.judge("own-test", FAKE)
    assert (verdict.outcome, verdict.evidence) == (Outcome.REFUSED, "1 failed, 2 passed")


@pytest.mark.parametrize("addopts", ["-n 2", "--lf"])
def test_options_that_cannot_be_followed_here_do_not_stop_the_test(addopts: str, house: PythonHouse) -> None:
    configure(house, f'addopts = "{addopts}"')
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_settings_that_would_write_into_the_app_do_not_stop_the_test(house: PythonHouse) -> None:
    configure(house, 'addopts = "--junitxml=report.xml --basetemp=.tmp"\nlog_file = "logs/test.log"')
    ask_more(house, "\n\ndef test_more(tmp_path):\n    (tmp_path / 'x').write_text('x')\n")
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, "3 passed" in verdict.evidence) == (Outcome.PASSED, True)


def test_a_demand_on_the_coverage_of_all_tests_is_none_on_one_of_them(house: PythonHouse) -> None:
    install(house, (
        "def pytest_addoption(parser):\n    parser.addoption('--cov', dest='cov_source', action='append')\n\n\n"
        "def pytest_sessionfinish(session):\n    session.exitstatus = 1 if session.config.option.cov_source else 0\n"
    ))  # fmt: skip
    configure(house, 'addopts = "--cov=src"')
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_a_red_test_stays_red_when_a_plugin_that_was_left_out_breaks_pytest(house: PythonHouse) -> None:
    install(house, "def pytest_configure():\n    raise ValueError('no licence')\n")
    configure(house)
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED
    assert house.judge("own-test", FAKE).outcome is Outcome.REFUSED


def test_a_configuration_that_breaks_pytest_is_told_when_a_test_lands(house: PythonHouse) -> None:
    configure(house, conftest="raise ValueError('no database')\n")
    house.place = Place(
        Target("orders", "test_service"), SERVICE_TEST, "tests.plugins.orders.test_service", is_test=True
    )
    verdict = house.judge("own-test", (house.root / SERVICE_TEST).read_text())
    assert "could not be run: pytest is broken by the app's configuration: ValueError" in verdict.evidence


def test_a_runner_of_the_app_that_the_configuration_breaks_leaves_the_body_unjudged(house: PythonHouse) -> None:
    configure(house, 'addopts = "--cov=src"')
    house.app = replace(house.app, runner=(sys.executable, "-m", "pytest"))
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, verdict.cause) == (Outcome.UNJUDGED, f"{BROKEN}unrecognized arguments: --cov=src")
