"""A pytest plugin that tells the landing gate what ran; loaded with `-p foundry_gate_report`.

The first line of stdin is a word that only the gate knows, a space, and the app's test folder below the working
directory (empty when its tests lie among its sources). Two lines go to the real stdout, each with that word in
front: `hello` when the plugin is loaded, and at the end of the session a JSON object with the counts. Both stdin
and stdout are taken before any code of the app runs. Python 3.9 and later, any pytest from 7 on; it runs where
this package's own types are not, so pytest's objects are `Any` here.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import types
import unittest
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.fixtures import FixtureLookupError
from _pytest.logging import caplog_records_key
from _pytest.reports import TestReport
from _pytest.runner import CallInfo, call_and_report
from _pytest.unittest import TestCaseFunction

_MOST_FAILURES = 20
_LONGEST = 1_500
_INSTALLED = ("site-packages", "dist-packages")
# A body that closes the descriptors it sees first does not close this one.
_OUT_OF_THE_WAY = 200
_RUNNING = ("_pytest", "pluggy", "unittest")
_SAYS_SO = ("skip", "xfail")
_CONTROL = "a control that has to fail"
_ASYNC = "async def functions are not natively supported"


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
        self._began = False
        self._broke = ""
        self._tampered = ""
        self._control: Any = None
        self._ended: set[str] = set()
        self._asked: set[str] = set()
        self._evasions: dict[str, str] = {}
        self._lacks: dict[str, str] = {}
        self._kinds: dict[str, dict[str, str]] = {}
        self._write("hello")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        self.joined = True

    def pytest_collectstart(self) -> None:
        self._began = True

    def pytest_internalerror(self, excinfo: Any) -> None:
        """Note what broke pytest that no test can have to do with: before it read one, or over its settings."""
        if not self._began or excinfo.type.__name__ == "PytestConfigWarning":
            self._broke = f"{excinfo.type.__name__}: {excinfo.value}"[:300]

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
        cause = getattr(error, "__cause__", None)
        if report.failed and isinstance(cause, ModuleNotFoundError) and cause.name:
            frames = _frames(cause)
            if isinstance(collector, pytest.Collector) and self._place.is_tests_own(frames):
                self._lacks[report.nodeid] = f"{cause.name}, which is not installed"

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
            if report.skipped and _skips(one.value):
                self._note_evasion(report.nodeid, one.value)
            if report.failed:
                lacks = self._lacking(call.when, one.value)
                self._lacks.update({report.nodeid: lacks} if lacks else {})

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

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        said: dict[str, Any] = {kind: len(noted) for kind, noted in self._kinds.items()}
        said["reasons"] = sorted(set(self._kinds.get("skipped", {}).values()))[:5]
        said |= {"collected": self._collected, "ran": len(self._ended), "deselected": self._deselected}
        said |= {"failures": self._failures, "broke": self._broke, "tampered": self._tampered or self._changed()}
        said |= {"asked": sorted(self._asked), "skipped_tests": sorted(self._kinds.get("skipped", {}))}
        said |= {"lacks": self._lacks, "evasions": self._evasions, "status": int(exitstatus)}
        self._write(json.dumps(said))

    def _write(self, said: str) -> None:
        if self._output >= 0:
            os.write(self._output, f"\n{self._word} {said}\n".encode())

    def _note(self, kind: str, report: Any) -> None:
        longrepr = getattr(report, "longrepr", None)
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else ""
        self._kinds.setdefault(kind, {})[report.nodeid] = reason[:300]

    def _fail(self, node: str, when: str, report: Any) -> None:
        if len(self._failures) < _MOST_FAILURES:
            self._failures.append([node, when, str(report.longrepr)[-_LONGEST:]])

    def _note_evasion(self, node: str, error: BaseException) -> None:
        where = self._place.evades(error)
        if where:
            self._evasions[node] = where

    def _lacking(self, when: str, error: BaseException) -> str:
        """What of this host's a test misses, when pytest itself and nothing else says so; empty otherwise."""
        frames = _frames(error)
        if isinstance(error, FixtureLookupError) and when == "setup" and self._place.is_tests_own(frames):
            return f"a plugin of pytest that is not installed: fixture {error.argname!r} not found"
        if _ASYNC in str(error) and frames and all(_is_pytests(file) for file, _ in frames):
            return f"a plugin of pytest that is not installed: {_ASYNC}"
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


class Place:
    """Where the app and its tests lie: whose code a traceback leads through.

    Args:
        root: the app's root.
        tests: its test folder; empty when the tests lie among the sources.
    """

    def __init__(self, root: str, tests: str) -> None:
        self._root = f"{root}/"
        self._tests = f"{root}/{tests}/" if tests else ""

    def is_tests_own(self, frames: list[tuple[str, int]]) -> bool:
        """Whether a traceback leads through none of the app's code but its tests."""
        return not any(self.is_apps(file) for file, _ in frames)

    def evades(self, error: BaseException) -> str:
        """The place from which a test was skipped that is not the test's own; empty when it is."""
        frames = _frames(error)
        while not frames and error.__context__ is not None:
            # unittest catches what skips and raises another; who skipped stands in the first.
            error = error.__context__
            frames = _frames(error)
        if isinstance(error.__context__, BaseException) and _skips(error.__context__):
            frames = [*frames, *_frames(error.__context__)]
        for file, line in frames:
            if self.is_apps(file):
                return f"{file.removeprefix(self._root)}:{line}"
        outer = [(file, line) for file, line in frames if not _is_pytests(file)]
        file, line = outer[-1] if outer else ("", 0)
        if file.startswith(self._root) and not _is_installed(file) and not _says_so(file, line):
            return f"{file.removeprefix(self._root)}:{line}, where no test asks for it"
        return ""

    def is_apps(self, file: str) -> bool:
        """Whether a file is the app's and no test."""
        if not file.startswith(self._root) or _is_installed(file):
            return False
        name = Path(file).name
        test = name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
        return not (file.startswith(self._tests) if self._tests else test) and name != "conftest.py"


def _skips(error: BaseException) -> bool:
    """Whether an exception skips a test or expects it to fail."""
    return type(error).__name__ in {"Skipped", "SkipTest", "XFailed"} or isinstance(
        error, (pytest.skip.Exception, pytest.xfail.Exception)
    )


def _is_installed(file: str) -> bool:
    return any(f"{os.sep}{folder}{os.sep}" in file for folder in _INSTALLED)


def _is_pytests(file: str) -> bool:
    """Whether a file belongs to what runs the tests."""
    return any(f"{os.sep}{package}{os.sep}" in file for package in _RUNNING) or file == __file__


def _says_so(file: str, line: int) -> bool:
    """Whether a line of a test names what it does; a frame may bear the name of a file that it is not from."""
    try:
        lines = Path(file).read_bytes().lower().splitlines()
    except OSError:
        return False
    return 0 < line <= len(lines) and any(word.encode() in lines[line - 1] for word in _SAYS_SO)


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame of a traceback, outermost first."""
    found = []
    trace: types.TracebackType | None = error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found


if "PYTEST_XDIST_WORKER" not in os.environ and not sys.stdin.isatty():
    _word, _, _tests = sys.stdin.readline().strip().partition(" ")
    _output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    _report = Report(_word, _output, Place(str(Path.cwd()), _tests))

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(config: Any) -> None:
        """Join the session, and keep it in this one process: what runs in others is under no control."""
        for option, value in (("dist", "no"), ("numprocesses", None), ("tx", [])):
            if hasattr(config.option, option):
                setattr(config.option, option, value)
        config.pluginmanager.register(_report, "foundry-gate-report-sink")
        sys.modules.pop(__name__, None)

    def pytest_internalerror(excinfo: Any) -> None:
        """Report that another plugin broke the session before it started, which then has no end either."""
        if not _report.joined:
            _report.pytest_internalerror(excinfo)
            _report.pytest_sessionfinish(3)
