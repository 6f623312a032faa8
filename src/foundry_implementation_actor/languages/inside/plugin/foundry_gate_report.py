"""A pytest plugin that tells the landing gate what ran; loaded with `-p foundry_gate_report`.

The first line of stdin is a word that only the gate knows, a space, and the app's test folder below the working
directory (empty when its tests lie among its sources). Lines go to the real stdout, each with that word in front:
`hello` when the plugin is loaded, and at the end of the session a JSON object with the counts; the last one holds.
Both stdin and stdout are taken before any code of the app runs. Python 3.9 and later, any pytest from 7 on; it
runs where this package's own types are not, so pytest's objects are `Any` here.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import unittest
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import ConftestImportFailure
from _pytest.fixtures import FixtureLookupError
from _pytest.logging import caplog_records_key
from _pytest.reports import TestReport
from _pytest.runner import CallInfo, call_and_report
from _pytest.unittest import TestCaseFunction

# On the import path in a test run only.
from foundry_gate_place import Place, frames_of, is_pytests, skips  # type: ignore[import-not-found]
from foundry_gate_settings import has_unknown, left_out, only_tests  # type: ignore[import-not-found]

_MOST_FAILURES = 20
_LONGEST = 1_500
_SHORT = 300
# A body that closes the descriptors it sees first does not close this one.
_OUT_OF_THE_WAY = 200
_CONTROL = "a control that has to fail"
_ASYNC = "async def functions are not natively supported"
_MARK = re.compile(r"'(\w+)' not found in `markers`|Unknown pytest\.mark\.(\w+)")
_NEEDS_PLUGIN = "a plugin of pytest that is not installed"


class Report:
    """Counts what pytest tells its plugins."""

    def __init__(self, word: str, output: int, place: Place) -> None:
        self._word = word
        self._output = output
        self._place = place
        self.joined = False
        self._collected: int | None = None
        self._deselected = 0
        self._failures: list[list[str]] = []
        self._broke = ""
        self._through: list[str] = []
        self._elsewheres: dict[str, str] = {}
        self._unknown = False
        self._tampered = ""
        self._control: Any = None
        self._failed: set[str] = set()
        self._ended: set[str] = set()
        self._asked: set[str] = set()
        self._evasions: dict[str, str] = {}
        self._lacks: dict[str, str] = {}
        self._kinds: dict[str, dict[str, str]] = {}
        self._write("hello")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        self.joined = True

    def pytest_internalerror(self, excinfo: Any) -> None:
        self.note_broke(excinfo.value)

    def note_broke(self, error: BaseException) -> None:
        """Note what broke pytest itself, and which of the app's files had a part in it.

        A test file that ends the session, as by `sys.exit`, is red and breaks nothing.
        """
        if not self._broke and not self._place.is_tests(error):
            told = isinstance(error, ConftestImportFailure) and str(error)
            self._broke = (told or f"{type(error).__name__}: {error}")[:_SHORT]
            self._through = self._place.through(error)

    def pytest_warning_recorded(self, warning_message: Any) -> None:
        """Note that a test bears a mark which no plugin that is loaded knows."""
        self._unknown = self._unknown or warning_message.category.__name__ == "PytestUnknownMarkWarning"

    def pytest_collection_finish(self, session: Any) -> None:
        self._collected = len(session.items)

    def pytest_deselected(self, items: Any) -> None:
        self._deselected += len(items)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        """Note whether it was the body that skipped a whole file, or the host that lacks a module of the test's."""
        outcome = yield
        report = outcome.get_result()
        call = getattr(report, "call", None)
        error = call.excinfo.value if call is not None and call.excinfo else None
        if report.skipped and error is not None:
            self._note_evasion(report.nodeid, error)
        if report.failed and error is not None and isinstance(collector, pytest.Collector):
            self._note_failed(report.nodeid, error, self._lacking_to_collect(error))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._fail(report.nodeid, "collect", report)
        elif report.skipped:
            self._note("skipped", report)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Note who skipped, and what only this host lacks; before pytest makes other exceptions of them."""
        raised = [*(getattr(item, "_excinfo", None) or ()), *filter(None, (call.excinfo,))]
        outcome = yield
        report = outcome.get_result()
        for one in raised:
            if report.skipped and skips(one.value):
                self._note_evasion(report.nodeid, one.value)
            if report.failed:
                self._note_failed(report.nodeid, one.value, self._lacking(call.when, one.value))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            self._ended.add(report.nodeid)
        # One that fails, as on a scaffold, may have failed before it came to the line where it skips.
        if report.when == "call" and (report.passed or hasattr(report, "wasxfail")):
            self._asked.add(report.nodeid)
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self._fail(report.nodeid, report.when, report)
        elif report.skipped:
            self._note("xfailed" if expected else "skipped", report)
        elif report.when == "call":
            self._note("xpassed" if expected else "passed", report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Make the test's control, before its fixtures change what the process knows of the host."""
        self._control = _control(item) if isinstance(item, pytest.Function) else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        """After each test a control of the same name, which must be reported as failed."""
        yield
        control, self._control = self._control, None
        if control is not None and not self._tampered:
            self._ask(control, item)

    def _ask(self, control: Any, beside: Any) -> None:
        """Ask a test that fails by itself; the way of its report is the way of every other."""
        sink = type(self)("", -1, self._place)
        option = beside.config.option
        # pytest's own form of a traceback parses the whole test file, each time.
        style, option.tbstyle = option.tbstyle, "native"
        try:
            sink.pytest_runtest_logreport(call_and_report(control, "call", log=False))
        finally:
            option.tbstyle = style
        if not sink.heard(_CONTROL):
            self._tampered = beside.nodeid

    def heard(self, fault: str) -> bool:
        """Whether a failure was reported with these words, and nothing else was."""
        return not self._kinds and any(fault in text for _, _, text in self._failures)

    def _changed(self) -> str:
        """A function of what runs and reports tests that the app's code has put in its place; empty when none."""
        for owner in (pytest.Function, TestCaseFunction, unittest.TestCase, TestReport, CallInfo, Report):
            for name, value in list(vars(owner).items()):
                function = getattr(value, "__func__", getattr(value, "fget", value))
                code = getattr(function, "__code__", None)
                if code is not None and self._place.is_apps(code.co_filename):
                    return f"{owner.__name__}.{name}"
        return ""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> Generator[None, Any, None]:
        """Report when all others have had their say, also when one of them breaks over it."""
        outcome = yield
        if outcome.excinfo:
            self.note_broke(outcome.excinfo[1])
        self.report(int(exitstatus), session.config)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_unconfigure(self, config: Any) -> Generator[None, Any, None]:
        """Report again when somebody breaks over the very end."""
        outcome = yield
        if outcome.excinfo:
            self.note_broke(outcome.excinfo[1])
            self.report(3, config)

    def report(self, status: int, config: Any = None) -> None:
        """Say what was seen; the last word counts."""
        said: dict[str, Any] = {kind: len(noted) for kind, noted in self._kinds.items()}
        said["reasons"] = sorted(set(self._kinds.get("skipped", {}).values()))[:5]
        said |= {"collected": self._collected, "ran": len(self._ended), "deselected": self._deselected}
        said |= {"failures": self._failures, "broke": self._broke, "tampered": self._tampered or self._changed()}
        said |= {"asked": sorted(self._asked), "skipped_tests": sorted(self._kinds.get("skipped", {}))}
        said |= {"lacks": self._lacks, "evasions": self._evasions, "status": status}
        said |= {"through": self._through, "elsewheres": self._elsewheres, "failed": sorted(self._failed)}
        said |= {"unknown": self._unknown or has_unknown(config), "left_out": left_out() if self._failed else []}
        self._write(json.dumps(said))

    def _write(self, said: str) -> None:
        if self._output >= 0:
            os.write(self._output, f"\n{self._word} {said}\n".encode())

    def _note(self, kind: str, report: Any) -> None:
        longrepr = getattr(report, "longrepr", None)
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else ""
        self._kinds.setdefault(kind, {})[report.nodeid] = reason[:_SHORT]

    def _fail(self, node: str, when: str, report: Any) -> None:
        self._failed.add(node)
        if len(self._failures) < _MOST_FAILURES:
            self._failures.append([node, when, str(report.longrepr)[-_LONGEST:]])

    def _note_evasion(self, node: str, error: BaseException) -> None:
        where = self._place.evades(error)
        if where:
            self._evasions[node] = where

    def _note_failed(self, node: str, error: BaseException, lacks: str) -> None:
        if lacks:
            self._lacks[node] = lacks
        elif self._place.is_elsewheres(error):
            self._elsewheres[node] = f"{type(error).__name__}: {error}"[:_SHORT]

    def _lacking_to_collect(self, error: BaseException) -> str:
        """What of this host's a test file misses to be read; empty when it is something else."""
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and self._place.is_tests_own(frames_of(cause)):
            return f"{cause.name}, which is not installed"
        mark = _MARK.search(str(error))
        frames = frames_of(error)
        if mark and is_pytests(frames[-1][0]) and self._place.is_tests_own(frames):
            return f"{_NEEDS_PLUGIN}: mark {mark[1] or mark[2]!r} is not known"
        return ""

    def _lacking(self, when: str, error: BaseException) -> str:
        """What of this host's a test misses, when pytest itself and nothing else says so; empty otherwise."""
        frames = frames_of(error)
        if isinstance(error, FixtureLookupError) and when == "setup" and self._place.is_tests_own(frames):
            return f"{_NEEDS_PLUGIN}: fixture {error.argname!r} not found"
        if _ASYNC in str(error) and frames and all(is_pytests(file) for file, _ in frames):
            return f"{_NEEDS_PLUGIN}: {_ASYNC}"
        return ""


def _control(beside: Any) -> Any:
    """A test that fails by itself and is called like another."""
    names: dict[str, Any] = {}
    text = f"def control():\n    raise AssertionError({_CONTROL!r})\n"
    # What a body could ask of it is what it could ask of its own test.
    exec(compile(text, str(beside.path), "exec"), names)  # noqa: S102
    # Below the session it has no marks and no fixtures of the test's.
    item: Any = pytest.Function.from_parent(beside.session, name=beside.name, callobj=names["control"])
    item._nodeid = beside.nodeid  # noqa: SLF001 - a node below the session takes no other
    item.stash[caplog_records_key] = {}
    return item


if "PYTEST_XDIST_WORKER" not in os.environ and not sys.stdin.isatty():
    _word, _, _tests = sys.stdin.readline().strip().partition(" ")
    _output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    _report = Report(_word, _output, Place(str(Path.cwd()), _tests, sys.argv[-1]))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(early_config: Any) -> Generator[None, Any, None]:
        """Report that a conftest cannot be loaded; without one, there will be no session."""
        only_tests(early_config.known_args_namespace)
        outcome = yield
        if outcome.excinfo:
            _report.note_broke(outcome.excinfo[1])
            _report.report(4)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(config: Any) -> None:
        """Join the session, and leave nothing behind by which a body could find the way here."""
        only_tests(config.option)
        config.pluginmanager.register(_report, "foundry-gate-report-sink")
        for name in (__name__, Place.__module__, only_tests.__module__):
            sys.modules.pop(name, None)

    def pytest_internalerror(excinfo: Any) -> None:
        """Report that another plugin broke the session before it started, which then has no end either."""
        if not _report.joined:
            _report.note_broke(excinfo.value)
            _report.report(3)
