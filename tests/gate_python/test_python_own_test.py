"""The class's own test: red, green, and everything that only looks like either."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from python_house import CLEAN, SERVICE, SERVICE_TEST, PythonHouse

from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.domain.verdict import Outcome, Verdict

GOOD = CLEAN[1].read_text()
IDLE = "asks nothing yet"
IMPORT = "from plugins.orders.service import OrderService\n"


def said(verdict: Verdict) -> str:
    return " ".join([verdict.cause, verdict.evidence, *map(str, verdict.findings)])


def test_a_body_that_fakes_its_behaviour_is_refused_by_its_test(house: PythonHouse) -> None:
    fake = GOOD.replace('order.status = "cancelled"\n        return True', "return False  # cancelled")
    verdict = house.judge("own-test", fake)
    assert verdict.outcome is Outcome.REFUSED
    assert "test_cancel" in said(verdict)
    assert "assert False is True" in said(verdict)


def test_a_class_without_a_test_is_unjudged_and_says_so(house: PythonHouse) -> None:
    house.place = replace(house.place, own_test="")
    assert house.judge("own-test", GOOD) == Verdict("own-test", Outcome.UNJUDGED, cause="the class has no own test")


def test_without_pytest_the_behaviour_is_unjudged(house: PythonHouse) -> None:
    house.app = replace(house.app, interpreter=(sys.executable, "-S"))
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, verdict.cause) == (
        Outcome.UNJUDGED, "pytest is not installed for the app's interpreter; gate doctor names what mends it",
    )  # fmt: skip


def test_a_runner_that_is_not_there_leaves_the_behaviour_unjudged(house: PythonHouse) -> None:
    house.app = replace(house.app, runner=("/no/such/pytest",))
    assert house.judge("own-test", GOOD).cause == "the test runner /no/such/pytest is not there"


@pytest.mark.parametrize(
    "trick",
    [
        "print('2 passed'); import os; os._exit(0)",
        "print('1 passed in 0.01s'); import os; os._exit(1)",
        "import sys; sys.stdout.write('{\"passed\": 2}\\n'); import os; os._exit(0)",
        "import pytest; pytest.exit('enough', returncode=0)",
        "import pytest; pytest.skip('later')",
        "import atexit, os; atexit.register(os._exit, 3); return super()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_a_body_cannot_talk_its_test_green(trick: str, house: PythonHouse) -> None:
    body = GOOD.replace("        lines = [", f"        {trick}\n        lines = [", 1)
    assert body != GOOD
    assert house.judge("own-test", body).outcome is not Outcome.PASSED


def test_a_summary_that_says_failed_is_not_what_is_believed(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, "def test_it():\n    print('2 failed')\n    assert 1\n")
    verdict = house.judge("own-test", GOOD.replace("from __future__", "print('FAILED')\nfrom __future__", 0))
    assert verdict.outcome is Outcome.PASSED


def test_a_test_that_reads_stdin_sees_its_end(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, "import os\n\ndef test_it():\n    assert os.read(0, 10) == b''\n")
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_a_test_that_forks_for_ever_is_ended_and_nothing_is_left(house: PythonHouse) -> None:
    house.app = replace(house.app, test_timeout_s=6.0)
    house.write(SERVICE_TEST, (
        "import os, time\n\n\ndef test_it():\n    for _ in range(5):\n"
        "        if os.fork() == 0:\n            os.setsid()\n            time.sleep(600)\n    time.sleep(600)\n"
    ))  # fmt: skip
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.REFUSED
    assert "did not end within" in said(verdict)


def test_everything_deselected_is_unjudged(house: PythonHouse) -> None:
    project = house.root / "pyproject.toml"
    project.write_text(project.read_text() + 'addopts = ["-k", "nothing_is_called_so"]\n')
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "2 deselected" in verdict.cause


def test_a_test_that_needs_a_plugin_gets_it(house: PythonHouse) -> None:
    plugin = house.root / "src"
    (plugin / "gate_sample_plugin.py").write_text("import pytest\n\n@pytest.fixture\ndef gift():\n    return 42\n")
    info = plugin / "gate_sample-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gate-sample\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pytest11]\ngate_sample = gate_sample_plugin\n")
    house.write(SERVICE_TEST, "def test_it(gift):\n    assert gift == 42\n")
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_an_option_of_a_plugin_that_is_not_there_does_not_refuse_a_body(house: PythonHouse) -> None:
    project = house.root / "pyproject.toml"
    project.write_text(project.read_text() + 'asyncio_mode = "auto"\nfilterwarnings = ["error"]\n')
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


def test_a_test_whose_plugin_is_nowhere_is_not_the_bodys_fault(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, "async def test_it(): ...\n\n\ndef test_other():\n    assert 1\n")
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "needs a plugin of pytest that is not installed: async def" in verdict.cause


def test_a_green_test_of_a_body_that_worked_before_is_not_called_idle(house: PythonHouse) -> None:
    house.write(SERVICE, GOOD)
    verdict = house.judge("own-test", GOOD + "\n")
    assert verdict.outcome is Outcome.PASSED
    assert IDLE not in verdict.evidence
    assert "2 passed" in verdict.evidence


def test_a_test_that_is_green_on_the_scaffold_is_said_to_ask_nothing(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, IMPORT + "\ndef test_it():\n    assert OrderService\n")
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.PASSED
    assert IDLE in verdict.evidence


def test_a_test_module_that_lacks_a_module_of_the_host_is_not_the_bodys_fault(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, "import nope_mod\n\ndef test_it(): ...\n")
    verdict = house.judge("own-test", GOOD)
    assert (verdict.outcome, verdict.cause) == (
        Outcome.UNJUDGED, "the test needs nope_mod, which is not installed",
    )  # fmt: skip


def test_a_body_that_imports_what_is_not_there_is_refused_by_its_test_too(house: PythonHouse) -> None:
    assert house.judge("own-test", "import nope_mod\n" + GOOD).outcome is Outcome.REFUSED


def test_a_test_cannot_write_into_the_app(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, (
        "import pathlib, pytest\nfrom plugins.orders import service\n\ndef test_it(tmp_path):\n"
        "    (tmp_path / 'x').write_text('x')\n    with pytest.raises(OSError):\n"
        "        pathlib.Path(service.__file__).with_name('new.py').write_text('x')\n"
    ))  # fmt: skip
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("standing", "told"),
    [(GOOD, "green under the body that stands: 2 passed"), (None, "red under the body that stands")],
)
def test_a_test_lands_unjudged_and_tells_what_it_says_of_the_body_that_stands(
    standing: str | None, told: str, house: PythonHouse
) -> None:
    if standing:
        house.write(SERVICE, standing)
    text = (house.root / SERVICE_TEST).read_text()
    house.place = Place(Target("orders", "test_service"), SERVICE_TEST, "tests.plugins.orders.test_service",
                        is_test=True)  # fmt: skip
    verdict = house.judge("own-test", text)
    assert (verdict.outcome, verdict.cause) == (Outcome.UNJUDGED, "a test is not judged by itself")
    assert told in verdict.evidence


def test_the_runner_of_the_app_is_the_one_that_judges(house: PythonHouse, tmp_path: Path) -> None:
    runner = tmp_path / "run-tests"
    runner.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -k place "$@"\n')
    runner.chmod(0o755)
    house.app = replace(house.app, runner=(str(runner),))
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.PASSED
    assert "1 passed, 1 deselected" in verdict.evidence


STRICT = '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n'
WARNS = "import warnings\n\n\ndef pytest_configure():\n    warnings.warn('an option is not set')\n"
ASKS = "import sys\n\nsys.path.insert(0, 'src')\n\n\ndef pytest_configure():\n    {call}\n"


def test_a_plugin_that_breaks_pytest_before_any_test_is_not_the_bodys_fault(house: PythonHouse) -> None:
    (house.root / "pyproject.toml").write_text(STRICT)
    (house.root / "conftest.py").write_text(WARNS)
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "pytest is broken by the app's configuration: UserWarning: an option is not set" in verdict.cause


@pytest.mark.parametrize("raised", ["ValueError('no')", "SystemExit(7)"])
def test_a_body_that_breaks_pytest_before_any_test_is_refused(raised: str, house: PythonHouse) -> None:
    call = "import plugins.orders.service as one; getattr(one, 'at_start', lambda: None)()"
    (house.root / "conftest.py").write_text(ASKS.format(call=call))
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED
    verdict = house.judge("own-test", f"{GOOD}\n\ndef at_start() -> None:\n    raise {raised}\n")
    assert verdict.outcome is Outcome.REFUSED


def test_a_runner_of_the_app_whose_warnings_are_errors_needs_no_cache_in_the_app(house: PythonHouse) -> None:
    (house.root / "pyproject.toml").write_text(STRICT)
    house.app = replace(house.app, runner=(sys.executable, "-m", "pytest"))
    assert house.judge("own-test", GOOD).outcome is Outcome.PASSED


FORGED_FRAME = (
    "exec(compile('import pytest; pytest.skip(1)', __import__('sys')._getframe(1).f_code.co_filename, 'exec'), {})"
)
ASKS_ALL = f"{IMPORT}\ndef test_it():\n    assert OrderService().can() is True\n\n\ndef test_other():\n    assert 1\n"


def can(step: str, before: str = "") -> str:
    """A body whose `can` does this."""
    return f"{before}\nclass OrderService:\n    def can(self):\n        {step}\n"


@pytest.mark.parametrize(
    "body",
    [
        can("__import__('pytest').skip('later')"),
        can("raise __import__('unittest').SkipTest('later')"),
        can("__import__('pytest').xfail('later')"),
        can(FORGED_FRAME),
        "class OrderService:\n    can = staticmethod(lambda: 1)\n    can = staticmethod(__import__('pytest').skip)\n",
        "class OrderService:\n    can = property(lambda self: __import__('pytest').skip)\n",
    ],
)
def test_a_body_that_makes_its_own_test_skip_is_refused(body: str, house: PythonHouse) -> None:
    house.write(SERVICE_TEST, ASKS_ALL.replace("can()", "can('x')" if "staticmethod" in body else "can()"))
    assert house.judge("own-test", body).outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    "said", ["fixture 'x' not found", "async def functions are not natively supported", "No module named 'nope'"]
)
def test_a_body_that_speaks_like_a_host_that_lacks_something_is_refused(said: str, house: PythonHouse) -> None:
    house.write(SERVICE_TEST, ASKS_ALL)
    assert house.judge("own-test", can(f'raise ModuleNotFoundError("{said}")')).outcome is Outcome.REFUSED


def test_a_test_that_skips_itself_for_its_own_reasons_is_no_fault_of_the_body(house: PythonHouse) -> None:
    skips = "import pytest\n\n\ndef test_later():\n    pytest.skip('later')\n\n\n"
    house.write(SERVICE_TEST, skips + ASKS_ALL)
    verdict = house.judge("own-test", can("return True"))
    assert (verdict.outcome, "2 passed, 1 skipped" in verdict.evidence) == (Outcome.PASSED, True)


def test_a_test_that_only_with_a_body_comes_to_where_it_skips_is_no_fault_of_the_body(house: PythonHouse) -> None:
    skips = "\n\ndef test_backend():\n    import pytest\n\n    OrderService().can()\n    pytest.skip('no backend')\n"
    house.write(SERVICE_TEST, ASKS_ALL + skips)
    verdict = house.judge("own-test", can("return True"))
    assert (verdict.outcome, "2 passed, 1 skipped" in verdict.evidence) == (Outcome.PASSED, True)


def test_a_test_that_passes_now_and_skips_under_the_body_is_evaded(house: PythonHouse) -> None:
    (house.root / SERVICE).write_text(can("return True"))
    skips = "\n\ndef test_backend():\n    import pytest\n\n    OrderService().can() is True or pytest.skip('no')\n"
    house.write(SERVICE_TEST, ASKS_ALL.replace("can() is True", "can()") + skips)
    assert house.judge("own-test", can("return 1")).outcome is Outcome.REFUSED


def test_a_test_that_speaks_of_another_python_is_no_tampering(house: PythonHouse) -> None:
    other = (
        "\n\ndef test_newer(monkeypatch):\n    import sys\n\n    monkeypatch.setattr(sys, 'version_info', (3, 99, 0))\n"
    )
    house.write(SERVICE_TEST, ASKS_ALL + other)
    assert house.judge("own-test", can("return True")).outcome is Outcome.PASSED


def test_a_body_that_makes_every_test_pass_is_found_by_a_control(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, ASKS_ALL)
    patch = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    assert "tampered with" in said(house.judge("own-test", can("return False", patch)))


def test_settings_that_pytest_cannot_be_used_with_are_no_fault_of_the_body(house: PythonHouse) -> None:
    (house.root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--no-such-option"\n')
    verdict = house.judge("own-test", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "unrecognized arguments: --no-such-option" in verdict.cause


def test_the_evidence_counts_failed_tests(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, ASKS_ALL)
    assert house.judge("own-test", can("return False")).evidence == "1 failed, 1 passed"
