"""Linkage: only what a candidate adds counts, and what could not be looked at is unjudged, never green."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from python_house import CLEAN, SERVICE_TEST, PythonHouse

from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.languages import python_place

GOOD = CLEAN[1].read_text()


def rules(house: PythonHouse, body: str) -> set[str]:
    return {finding.rule for finding in house.judge("linkage", body).findings}


def with_method(text: str, before: str = "") -> str:
    first, _, rest = GOOD.partition("\n")
    return f"{first}\n{before}{rest}\n    def more(self):\n        {text}\n"


def analyser(house: PythonHouse, tmp_path: Path, script: str, timeout_s: float = 20.0) -> None:
    """An executable in the place of ty."""
    program = tmp_path / "analyser"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    house.app = replace(house.app, analyser=(str(program),), probe_timeout_s=timeout_s)


def test_an_old_finding_that_moved_by_three_lines_does_not_count(house: PythonHouse) -> None:
    old = with_method("return self.repo.nowhere()")
    house.write(house.place.path, old)
    assert rules(house, "# one\n# two\n# three\n" + old) == set()


def test_a_second_finding_like_an_old_one_counts(house: PythonHouse) -> None:
    house.write(house.place.path, with_method("return self.repo.nowhere()"))
    twice = with_method("return self.repo.nowhere() or self.repo.nowhere()")
    assert rules(house, twice) == {"missing-attribute"}


def test_imports_removed_and_their_users_kept_is_refused(house: PythonHouse) -> None:
    body = GOOD.replace("from plugins.orders.models import Order, OrderLine\n", "")
    assert rules(house, body) == {"unresolved-reference"}


def test_a_method_that_the_own_test_calls_may_not_be_renamed(house: PythonHouse) -> None:
    test = "from plugins.orders.service import OrderService\n\n\ndef test_it(s: OrderService):\n    s.extra()\n"
    house.write(SERVICE_TEST, test)
    extra = f"{GOOD}\n    def extra(self):\n        pass\n"
    house.write(house.place.path, extra)
    verdict = house.judge("linkage", extra.replace("def extra", "def renamed"))
    assert [finding.path for finding in verdict.findings] == [f"{SERVICE_TEST}:5"]


def test_what_the_own_test_asks_of_a_body_still_to_come_holds_nothing_back(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, "from plugins.orders.service import OrderService, OrderError\n")
    assert rules(house, GOOD) == set()


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("exit 101", "ty ended with 101"),
        ("exit 255", "ty ended with 255"),
        ("kill -SEGV $$", "ty ended with"),
        ("echo nonsense", "no findings that can be read"),
        ("echo '[{}]'", "no findings that can be read"),
        ("echo '{}' | head -c 0", "no findings that can be read"),
    ],
)
def test_an_analyser_that_crashes_leaves_the_body_unjudged(
    script: str, cause: str, house: PythonHouse, tmp_path: Path
) -> None:
    analyser(house, tmp_path, script)
    verdict = house.judge("linkage", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert cause in verdict.cause


def test_an_analyser_that_hangs_leaves_the_body_unjudged(house: PythonHouse, tmp_path: Path) -> None:
    analyser(house, tmp_path, "sleep 60", timeout_s=3.0)
    verdict = house.judge("linkage", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "ty did not end within" in verdict.cause


def test_an_analyser_that_is_not_there_leaves_the_body_unjudged(
    house: PythonHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_place, "TY", "0.0.1")
    verdict = house.judge("linkage", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "it needs ty 0.0.1, which the `gate` extra brings, and finds 0." in verdict.cause


def test_the_import_still_refuses_when_the_analyser_is_broken(house: PythonHouse, tmp_path: Path) -> None:
    analyser(house, tmp_path, "exit 101")
    verdict = house.judge("linkage", "import plugins.nowhere\n" + GOOD)
    assert verdict.outcome is Outcome.REFUSED
    assert "ty ended with 101" in verdict.cause


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os; os._exit(0)", "ends the process with 0"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ends the process with"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("print('forged {\"findings\": []}', flush=True); import os; os._exit(0)", "ends the process"),
        ("assert False, 'no'", "AssertionError: no"),
    ],
)
def test_a_body_whose_import_ends_everything_is_refused(line: str, said: str, house: PythonHouse) -> None:
    verdict = house.judge("linkage", f"{GOOD}\n\n{line}\n")
    assert verdict.outcome is Outcome.REFUSED
    assert said in str(verdict.findings[0])


def test_a_body_whose_import_never_ends_is_refused_with_that_cause(house: PythonHouse) -> None:
    house.app = replace(house.app, probe_timeout_s=4.0)
    verdict = house.judge("linkage", f"{GOOD}\n\nwhile True:\n    pass\n")
    assert verdict.outcome is Outcome.REFUSED
    assert "importing it does not end within" in verdict.findings[0].message


def test_a_module_that_could_not_be_imported_before_either_is_unjudged(house: PythonHouse) -> None:
    house.write("src/plugins/orders/__init__.py", "raise RuntimeError('needs a server')\n")
    verdict = house.judge("linkage", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "nor can the original: RuntimeError: needs a server" in verdict.cause


def test_a_module_that_only_an_import_hook_finds_links(house: PythonHouse) -> None:
    house.write("src/plugins/__init__.py", (
        "import sys, types\n"
        "made = types.ModuleType('made_up')\n"
        "made.answer = 42\n"
        "sys.modules['made_up'] = made\n"
        "made.__spec__ = types.SimpleNamespace(name='made_up')\n"
    ))  # fmt: skip
    assert rules(house, with_method("return made_up.answer", "import made_up\n")) == set()


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("found.append(1)", False),
        ("found.add_all(1)", True),
        ("anything.run()", False),
        ("self.cancel(*found, *found)", False),
        ("self.cancel(1, 2, 3)", True),
    ],
)
def test_precision_of_types_is_no_linkage(line: str, *, refused: bool, house: PythonHouse) -> None:
    method = f"\n    def more(self, found: Sequence[int], anything: object) -> None:\n        {line}\n"
    first, _, rest = GOOD.partition("\n")
    body = f"{first}\nfrom collections.abc import Sequence\n{rest}{method}"
    assert bool(rules(house, body)) is refused


def test_a_body_that_its_companion_completes_links(house: PythonHouse) -> None:
    body = with_method("return discount(1)", "from plugins.orders.discounts import discount\n")
    house.write("src/plugins/orders/discounts.py", "")
    assert rules(house, body) != set()
    companion = {"src/plugins/orders/discounts.py": b"def discount(x: int) -> int:\n    return x\n"}
    assert house.judge("linkage", body, beside=companion).outcome is Outcome.PASSED


def test_a_test_may_ask_for_what_is_not_written_yet_but_not_use_names_it_never_made(house: PythonHouse) -> None:
    house.place = Place(Target("orders", "test_service"), SERVICE_TEST, "tests.plugins.orders.test_service",
                        is_test=True)  # fmt: skip
    wish = "from plugins.orders.service import OrderService, Later\n\ndef test_it():\n    OrderService.place_all()\n"
    assert rules(house, wish) == set()
    assert rules(house, "def test_it():\n    Service().place()\n") == {"unresolved-reference"}
    assert rules(house, "import nope_mod\n\ndef test_it():\n    pass\n") == {"import-not-found"}


def test_abstract_on_purpose_is_no_defect(house: PythonHouse) -> None:
    body = (
        "from abc import abstractmethod\nfrom plugins.orders.contracts import OrderServiceContract\n\n"
        "class OrderService(OrderServiceContract):\n    @abstractmethod\n    def audit(self) -> None: ...\n"
    )
    house.place = replace(house.place, own_test="")
    assert rules(house, body) == set()


def test_construction_is_asked_of_the_apps_container(house: PythonHouse) -> None:
    assert house.judge("construction", GOOD).outcome is Outcome.UNJUDGED
    house.write("src/container.py", (
        "import importlib, sys\n"
        "module, _, name = sys.argv[1].rpartition('.')\n"
        "getattr(importlib.import_module(module), name)(None, None, None)\n"
    ))  # fmt: skip
    house.app = replace(house.app, construct=(sys.executable, str(house.root / "src/container.py"), "{class}"))
    assert house.judge("construction", GOOD).outcome is Outcome.PASSED
    needs_more = GOOD.replace("notifier: Notifier) -> None:", "notifier: Notifier, clock: int) -> None:")
    verdict = house.judge("construction", needs_more)
    assert verdict.outcome is Outcome.REFUSED
    assert "clock" in verdict.findings[0].message
    house.write("src/container.py", "raise SystemExit('no container today')\n")
    verdict = house.judge("construction", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "no container today" in verdict.cause


def test_a_judge_that_breaks_leaves_the_body_unjudged(house: PythonHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_place, "_installed", lambda package: 1 / 0)
    verdict = house.judge("linkage", GOOD)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "the judge broke: ZeroDivisionError" in verdict.cause


def test_what_update_wrapper_gives_a_body_links(house: PythonHouse) -> None:
    wraps = "    def __init__(self, inner: type) -> None:\n        functools.update_wrapper(self, inner)\n"
    shows = "    def shown(self) -> str:\n        return self.__wrapped__.__name__ + self.__name__\n"
    body = f"{GOOD}\n\nimport functools\n\n\nclass Wrapped:\n{wraps}\n{shows}"
    assert house.judge("linkage", body).outcome is Outcome.PASSED


PROXY = "class _P:\n    @property\n    def __class__(self):\n        raise RuntimeError\n\n\n_p = _P()\n"
META = "class _M(type):\n    def __getattr__(cls, name: str) -> int:\n        return 1\n\n\n"


@pytest.mark.parametrize(
    "before", [PROXY, META + "class _Of(metaclass=_M): ...\n", "import os\nos.closerange(3, 100)\n"]
)
def test_a_body_that_is_odd_and_legal_does_not_break_the_probe(before: str, house: PythonHouse) -> None:
    future, _, rest = CLEAN[1].read_text().partition("import annotations\n")
    verdict = house.judge("linkage", f"{future}import annotations\n{before}{rest}")
    assert verdict.outcome is Outcome.PASSED, verdict


def test_a_class_that_its_own_module_replaces_when_it_is_loaded_is_refused(house: PythonHouse) -> None:
    verdict = house.judge("linkage", CLEAN[1].read_text() + "\nglobals()['OrderService'] = None\n")
    assert "is no class, but NoneType" in str(verdict.findings)
