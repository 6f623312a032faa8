"""A PHP class's own test by PHPUnit: judged by its JUnit report and a listing, never by code or text alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree as ET

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Ended
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.php_place import ask, last_line, why_silent
from foundry_implementation_actor.languages.port import Tests

_LISTED = re.compile(r"<(?:testCaseMethod|testMethod|phpt)\b")
_NOTHING_THERE = ("WarningTestCase", "No tests found")
_NEEDS = re.compile(r"PHPUnit requires the .*")
_FATAL = re.compile(r"(?:Fatal error|Parse error|Error): +(.+)")
_WHERE = re.compile(r"^\S+\.php:(\d+)$", re.MULTILINE)
_INSTALL = (
    "on Debian: apt-get install phpunit php-xml php-mbstring, or in the app: composer require --dev phpunit/phpunit"
)
_MOST = 20
_SKIPPED = "skipped or incomplete"
_WARNED = "with a warning"
_UNASKED = frozenset({_SKIPPED, _WARNED})
_QUOTED = r"(?:\|.|[^'|])*"
_IGNORED = re.compile(rf"##teamcity\[testIgnored name='({_QUOTED})' message='{_QUOTED}' details='({_QUOTED})'")
_FINISHED = re.compile(rf"##teamcity\[testFinished name='{_QUOTED}'")
_FRAME = re.compile(r"^ *(/.+?):(\d+)$", re.MULTILINE)
_NOT_FOUND = re.compile(r'(?:Class|Interface|Trait|Enum) "[^"]+" not found')
_NO_AUTOLOAD = "the app has no vendor/autoload.php, so its classes cannot be found; run composer install"
_NOT_STARTED = 127


def own_test(app: App, path: str, run: Run, *, original: bool = False) -> Tests:
    """Run one test file and read its report. See `port.Tests`.

    Args:
        app: whose `runner` is PHPUnit with its own arguments.
        path: the test file, relative to the app's root.
        run: the isolation.
        original: run it on the app as it is, without the candidate.
    """
    if not app.runner:
        return Tests(cause=f"PHPUnit is not installed; {_INSTALL}")
    question = {"runner": app.runner, "interpreter": app.interpreter, "path": path}
    answer, completed = ask(app, run, "tests.php", question, app.test_timeout_s, "-n", original=original)
    if answer is None and completed.ended is Ended.TIMEOUT:
        return Tests(fault=f"the test did not end within {app.test_timeout_s:g} s")
    if answer is None and completed.ended not in {Ended.EXIT, Ended.NOT_FOUND, Ended.STOPPED}:
        return Tests(fault=f"the test was ended: {completed.ended}")
    if answer is None:
        return Tests(cause=why_silent(completed, "the test runner"))
    return _read(answer, app, path)


def _read(answer: dict[str, Any], app: App, path: str) -> Tests:
    collected = _collected(answer["listed"])
    cases = _cases(answer["report"])
    if cases is None:
        return _no_report(answer, path, collected)
    heard = Counter(_heard(case) for case in cases)
    failed = [case for case in cases if _heard(case) == "failed"]
    unasked = frozenset(_title(case) for case in cases if _heard(case) in _UNASKED)
    # One that failed, as on a scaffold, may have failed before it came to the line where it skips.
    asked = frozenset(_title(case) for case in cases if _heard(case) == "passed") - unasked
    told = ", ".join(f"{count} {word}" for word, count in sorted(heard.items()))
    if failed and not answer["loads"] and all(_NOT_FOUND.search(_told(case)) for case in failed):
        return Tests(cause=_NO_AUTOLOAD, said=told, unasked=frozenset(map(_title, failed)))
    failures = (*(_failure(case, path) for case in failed), *_evasions(answer["story"], cases, app, path))[:_MOST]
    fault = ""
    if not failures and (heard["passed"] or answer["code"] not in {0, 1}):
        fault = _fault(answer, len(cases), collected) or _disagreement(answer["story"], heard["passed"])
    said = told or "it has no test"
    if failures and not answer["loads"]:
        said = f"{said}; {_NO_AUTOLOAD}"
    return Tests(collected, len(cases), heard["passed"], failures, fault, "", said, asked, unasked)


def _evasions(story: str, cases: list[ET.Element], app: App, path: str) -> Iterator[Finding]:
    """The tests that were skipped, or left with a warning, from the app's code and not from the test's own."""
    told = [(name, details.replace("|n", "\n")) for name, details in _IGNORED.findall(story)]
    told += [(case.get("name", ""), _told(case)) for case in cases if _heard(case) == _WARNED]
    for name, details in told:
        for file, line in _FRAME.findall(details):
            if _is_apps(file, app, path):
                where = f"{PurePosixPath(file).relative_to(app.root)}:{line}"
                yield Finding("own-test", path, f"{name}: the test was skipped from {where}")
                break


def _is_apps(file: str, app: App, path: str) -> bool:
    """Whether a file is the app's and no test."""
    place = PurePosixPath(file)
    if not place.is_relative_to(app.root) or place.is_relative_to(app.root / "vendor"):
        return False
    below = place.relative_to(app.root)
    tests, source = PurePosixPath(app.tests), PurePosixPath(app.source)
    apart = tests.parts and not source.is_relative_to(tests)
    return not (below.is_relative_to(tests) if apart else str(below) == path)


def _fault(answer: dict[str, Any], ran: int, collected: int) -> str:
    """Why the run cannot stand although no test said no; empty when it can."""
    if answer["code"] != 0 or answer["signal"]:
        return f"PHPUnit {_ending(answer)} although no test failed: {_reason(answer['said'])}"
    if ran != collected:
        return f"PHPUnit listed {collected} tests and reports on {ran}"
    return ""


def _disagreement(story: str, passed: int) -> str:
    """How a report that a body wrote in PHPUnit's place shows: what passed in it is not in the story of the run."""
    told = len(_FINISHED.findall(story))
    return "" if told >= passed else f"the report has {passed} tests that passed, and PHPUnit told of the end of {told}"


def _no_report(answer: dict[str, Any], path: str, collected: int) -> Tests:
    said = answer["said"]
    needs = _NEEDS.search(said)
    if needs:
        return Tests(cause=f"{needs[0].strip()} {_INSTALL}")
    if not collected and answer["code"] == _NOT_STARTED:
        return Tests(cause=f"the test runner could not be started: {_reason(said)}")
    if not answer["loads"] and _NOT_FOUND.search(said):
        return Tests(cause=_NO_AUTOLOAD)
    if not collected and "syntax error" in said and path in said:
        return Tests(cause=f"the test itself does not parse: {_reason(said)}")
    ended = f"the test process {_ending(answer)} before PHPUnit could report"
    return Tests(collected, 0, fault=f"{ended}: {_reason(said)}" if said.strip() else ended)


def _ending(answer: dict[str, Any]) -> str:
    return f"was killed by signal {answer['signal']}" if answer["signal"] else f"ended with code {answer['code']}"


def _reason(said: str) -> str:
    fatal = _FATAL.search(said)
    return fatal[1].strip()[:300] if fatal else last_line(said)


def _collected(listed: str) -> int:
    """How many tests PHPUnit listed; one that only warns is none."""
    return 0 if _NOTHING_THERE[0] in listed and len(_LISTED.findall(listed)) == 1 else len(_LISTED.findall(listed))


def _cases(report: str) -> list[ET.Element] | None:
    """The tests of a JUnit report; None when it is no whole report."""
    if "<!DOCTYPE" in report or "<!ENTITY" in report:
        return None
    try:
        root = ET.fromstring(report)  # noqa: S314 - without entities there is nothing to expand
    except ET.ParseError:
        return None
    return list(root.iter("testcase"))


def _heard(case: ET.Element) -> str:
    """What one test said, in a word."""
    kinds = {child.tag: child.get("type", "") for child in case}
    if "failure" in kinds or "error" in kinds:
        return "risky" if kinds.get("error", "").endswith("RiskyTestError") else "failed"
    if "skipped" in kinds:
        return _SKIPPED
    if "warning" in kinds:
        return _WARNED
    return "asserting nothing" if case.get("assertions") == "0" else "passed"


def _title(case: ET.Element) -> str:
    return f"{case.get('class', '')}::{case.get('name', '')}".removeprefix("::")


def _told(case: ET.Element) -> str:
    """What a test that did not pass says, with its stack."""
    return next((child.text or "" for child in case if child.tag in {"failure", "error", "warning"}), "")


def _failure(case: ET.Element, path: str) -> Finding:
    told = _told(case)
    where = _WHERE.findall(told)
    line = where[-1] if where else case.get("line", "1")
    name = _title(case)
    # The report begins with the test's own name; what follows is what it says.
    text = told.strip().removeprefix(name).strip()
    # The line of the test itself is told before it.
    text = "\n".join(said for said in text.splitlines() if said.strip() and not said.endswith(f"/{path}:{line}"))
    return Finding("own-test", f"{path}:{line}", f"{name}: {text[:1500]}")
