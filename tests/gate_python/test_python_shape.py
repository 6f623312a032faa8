"""Syntax and shape: what is Python, what declares its class, what drops a name."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from python_house import SERVICE, PythonHouse

from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.languages import python_place
from foundry_implementation_actor.languages.python import is_scaffold, shape

ORIGINAL = "import os\nLIMIT = 3\n\ndef total(): ...\n\nclass Helper: ...\n\nclass OrderService:\n    pass\n"


def findings(body: str, original: str = ORIGINAL, class_: str = "OrderService") -> list[str]:
    place = Place(Target("orders", class_), SERVICE, "plugins.orders.service", is_test=False)
    return [str(finding) for finding in shape(Candidate(place, body.encode(), original.encode())).findings]


def of_test(body: str, class_: str = "test_service") -> list[str]:
    place = Place(Target("orders", class_), "tests/x/test_service.py", "tests.x.test_service", is_test=True)
    return [str(finding) for finding in shape(Candidate(place, body.encode(), b"")).findings]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"class OrderService:\n  def f(self:\n    pass\n", "SyntaxError"),
        (b"class OrderService:\n\tx = 1\n        y = 2\n", "TabError"),
        (b"class OrderService:\n    x = 'a\x00b'\n", "null bytes"),
        (b"# coding: no-such-coding\nclass OrderService: pass\n", "unknown encoding"),
        (b"class OrderService:\n    x = '\xff\xfe'\n", "utf-8"),
        ("class OrderService: pass\n".encode("utf-16"), ""),
        (b"def f(a, a): pass\n", "duplicate argument"),
        (b"return 1\n", "outside function"),
        (b"x = " + b"(" * 3_000 + b")" * 3_000, ""),
        (b"class OrderService:\ndef f(self): pass\n", "IndentationError"),
    ],
)
def test_what_the_interpreter_does_not_compile_is_refused(body: bytes, said: str, house: PythonHouse) -> None:
    verdict = house.judge("syntax", body)
    assert verdict.outcome is Outcome.REFUSED
    assert said in str(verdict.findings[0])


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfclass OrderService: pass\n",
        b"# coding: latin-1\nclass OrderService:\n    x = '\xe9'\n",
        b"class OrderService:\r\n    pass\r\n",
        b"class OrderService: pass",
        "class OrderService:\n    名前 = 'é'\n".encode(),
        b"",
    ],
)
def test_every_spelling_that_python_takes_passes(body: bytes, house: PythonHouse) -> None:
    assert house.judge("syntax", body).outcome is Outcome.PASSED


def test_a_warning_of_the_compiler_is_told_and_does_not_refuse(house: PythonHouse) -> None:
    verdict = house.judge("syntax", "class OrderService:\n    x = '\\d'\n")
    assert verdict.outcome is Outcome.PASSED
    assert "line 2: invalid escape sequence" in verdict.evidence


def test_an_interpreter_that_is_not_known_is_asked_itself(house: PythonHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_place, "_versions", {})
    house.app = replace(house.app, interpreter=("/usr/bin/env", sys.executable))
    assert house.judge("syntax", "class OrderService: pass\n").outcome is Outcome.PASSED
    assert house.judge("syntax", "class OrderService pass\n").outcome is Outcome.REFUSED
    assert python_place.interpreter_version(house.app) == sys.version_info[:2]


def test_an_interpreter_that_is_not_there_leaves_the_syntax_unjudged(house: PythonHouse) -> None:
    house.app = replace(house.app, interpreter=("/no/such/python",))
    verdict = house.judge("syntax", "class OrderService pass\n")
    assert verdict == Verdict(
        "syntax", Outcome.UNJUDGED, cause="the interpreter /no/such/python is not there", evidence=verdict.evidence
    )


def test_a_newer_grammar_is_judged_by_the_interpreter_that_has_it(house: PythonHouse, tmp_path: Path) -> None:
    newer = tmp_path / "python3.99"
    newer.write_text('#!/bin/sh\necho \'{"version": [3, 99], "line": 0, "error": "", "warnings": []}\'\n')
    newer.chmod(0o755)
    house.app = replace(house.app, interpreter=(str(newer),))
    body = "class OrderService with grammar of tomorrow: pass\n"
    assert house.judge("syntax", body).outcome is Outcome.PASSED
    assert python_place.interpreter_version(house.app) == (3, 99)


KEPT = "from x import *\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("LIMIT = 3\ndef total(): ...\nclass Helper: ...\nclass OrderService:\n    x = 1\n", ""),
        (f"{KEPT}class OrderServices: ...\n", "does not declare the class OrderService; it declares OrderServices"),
        (f"{KEPT}if True:\n    class OrderService: ...\n", "at line 3, but not at its top level"),
        (f"{KEPT}def f():\n    class OrderService: ...\n", "not at its top level"),
        (f"{KEPT}class OrderService: ...\nclass OrderService: ...\n", "a second time"),
        (f"{KEPT}class OrderService: ...\ndel OrderService\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nOrderService = None\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nOrderService = object()\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nfor OrderService in ():\n    pass\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nfrom a import b as OrderService\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nif 1:\n    class OrderService: ...\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nwith open('x') as OrderService: ...\n", "to something else"),
        (f"{KEPT}class OrderService: ...\ntry: ...\nexcept E as OrderService: ...\n", "to something else"),
        (f"{KEPT}class OrderService: ...\nmatch 1:\n    case OrderService: ...\n", "to something else"),
        (f"{KEPT}OrderService = None\nclass OrderService: ...\n", ""),
        (f"{KEPT}class OrderService: ...\nall_ = [OrderService for OrderService in ()]\n", ""),
        (f"{KEPT}class OrderService: ...\nOrderService = register(OrderService)\n", ""),
        (f"{KEPT}@register\nclass OrderService: ...\n", ""),
        ("LIMIT = 3\nclass Helper: ...\nclass OrderService: ...\n", "drops total"),
        ("def total(): ...\nclass Helper: ...\nclass OrderService: ...\n", "drops LIMIT"),
        ("from a import LIMIT, total\nfrom b import H as Helper\nclass OrderService: ...\n", ""),
        ("try:\n    LIMIT = 1\nfinally:\n    total = Helper = 2\nclass OrderService: ...\n", ""),
        ("def __getattr__(name): ...\nclass OrderService: ...\n", ""),
        ("LIMIT, total = 1, 2\nHelper: type = int\nclass OrderService: ...\n", ""),
    ],
)
def test_a_body_declares_its_class_once_and_keeps_the_other_names(body: str, said: str) -> None:
    found = findings(body)
    assert (said in found[0]) if said else found == []


def test_private_names_and_imports_may_go_but_what_all_lists_may_not() -> None:
    original = "import os\nfrom a import b\n_private = 1\n__all__ = ['b', 'OrderService']\nclass OrderService: ...\n"
    assert findings("class OrderService: ...\n", original) == [
        f"{SERVICE}: drops b, which the module declared; others may import it"
    ]


def test_an_original_that_is_no_python_holds_nobody_back() -> None:
    assert findings("class OrderService: ...\n", "class (") == []


@pytest.mark.parametrize(
    ("body", "class_", "good"),
    [
        ("def test_it(): ...\n", "test_service", True),
        ("class TestIt:\n    def test_it(self): ...\n", "test_service", True),
        ("def helper(): ...\n", "test_service", False),
        ("class TestOrderService:\n    def test_it(self): ...\n", "TestOrderService", True),
        ("def test_it(): ...\n", "TestOrderService", False),
    ],
)
def test_a_test_module_declares_the_test_that_it_is_named_by(body: str, class_: str, *, good: bool) -> None:
    assert (of_test(body, class_) == []) is good


@pytest.mark.parametrize(
    ("body", "scaffold"),
    [
        ("class A:\n    pass\n", True),
        ('class A:\n    """Text."""\n', True),
        ("class A:\n    def f(self):\n        raise NotImplementedError\n", True),
        ('class A:\n    def f(self):\n        """T."""\n        raise NotImplementedError("later")\n', True),
        ("class A:\n    def __init__(self): self.x = 1\n    def f(self): raise NotImplementedError\n", True),
        ("class A:\n    def f(self):\n        return 1\n", False),
        ("class A:\n    x: int = 0\n", False),
        ("class A:\n    def f(self): ...\n", False),
        ("class B:\n    pass\n", False),
        ("class A(\n", False),
    ],
)
def test_a_scaffold_is_told_from_a_body(body: str, *, scaffold: bool) -> None:
    assert is_scaffold(body.encode(), "A") is scaffold


@pytest.mark.parametrize(
    "step",
    [
        "import pytest",
        "from _pytest import python",
        "import sys; sys.modules['pytest']",
        "import sys; 'pytest' in sys.modules",
        "import importlib; importlib.import_module('_pytest.runner')",
        "import sys; sys._getframe(1).f_globals['x'] = 1",
    ],
)
def test_a_body_that_reaches_for_what_runs_its_tests_is_refused(step: str) -> None:
    body = f"{KEPT}class OrderService:\n    def f(self):\n        {step}\n"
    assert len(findings(body)) == 1
    assert findings(body, body) == []


@pytest.mark.parametrize(
    "step",
    [
        "class All(int):\n        def __eq__(self, other): return True",
        "class All(int):\n        def __eq__(self, *others): return self is self",
        "class All(int):\n        __eq__ = lambda self, other: True",
        "return type('All', (int,), {'__eq__': lambda self, other: 1 == 1})",
        "from unittest.mock import ANY; return ANY",
        "from unittest import mock; return mock.ANY",
    ],
)
def test_a_body_with_results_that_equal_everything_is_refused(step: str) -> None:
    body = f"{KEPT}class OrderService:\n    def f(self):\n        {step.replace(chr(10), chr(10) + '    ')}\n"
    assert ["equals whatever a test expects" in finding for finding in findings(body)] == [True]
    assert findings(body, body) == []


@pytest.mark.parametrize(
    "equality",
    [
        "def __eq__(self, other): return isinstance(other, OrderService)",
        "def __eq__(self, other): return NotImplemented",
        "def __eq__(self, other): return False",
        "def __eq__(self, other): raise TypeError('not to be compared')",
        "def __eq__(self, other): ...",
        "def __eq__(self, *others): return self.f(*others)",
        "__eq__ = lambda self, other: self is other",
        "__eq__ = object.__eq__",
        "def __ne__(self, other): return True",
    ],
)
def test_a_body_that_compares_in_its_own_way_is_not_refused(equality: str) -> None:
    assert findings(f"{KEPT}class OrderService:\n    {equality}\n") == []
