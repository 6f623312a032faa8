"""A pytest plugin that tells the landing gate what ran; loaded with `-p foundry_gate_report`.

The first line of stdin is a word that only the gate knows. Two lines go to the real stdout, each with that
word in front: `hello` when the plugin is loaded, and at the end of the session a JSON object with the counts.
Both stdin and stdout are taken before any code of the app runs. Python 3.9 and later, any pytest from 7 on;
it runs where this package's own types are not, so pytest's objects are `Any` here.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_MOST_FAILURES = 20
_LONGEST = 1_500


class Report:
    """Counts what pytest tells its plugins."""

    def __init__(self, word: str, output: int) -> None:
        self._word = word
        self._output = output
        self._collected: int | None = None
        self._deselected = 0
        self._failures: list[list[str]] = []
        self._missing: list[str] = []
        self._began = False
        self._broke = ""
        self._ended: set[str] = set()
        self._kinds: dict[str, dict[str, str]] = {}
        self._write("hello")

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

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._fail(report.nodeid, "collect", report)
        elif report.skipped:
            self._note("skipped", report)

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Note a module that the test file itself imports and that is not there."""
        error = getattr(call.excinfo.value, "__cause__", None)
        if isinstance(error, ModuleNotFoundError) and error.name and _raised_in(error) == str(node.path):
            self._missing.append(error.name)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            self._ended.add(report.nodeid)
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self._fail(report.nodeid, report.when, report)
        elif report.skipped:
            self._note("xfailed" if expected else "skipped", report)
        elif report.when == "call":
            self._note("xpassed" if expected else "passed", report)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        said: dict[str, Any] = {kind: len(noted) for kind, noted in self._kinds.items()}
        said["reasons"] = sorted(set(self._kinds.get("skipped", {}).values()))[:5]
        said |= {"collected": self._collected, "ran": len(self._ended), "deselected": self._deselected}
        said |= {"failures": self._failures, "missing": self._missing, "broke": self._broke, "status": int(exitstatus)}
        self._write(json.dumps(said))

    def _write(self, said: str) -> None:
        os.write(self._output, f"\n{self._word} {said}\n".encode())

    def _note(self, kind: str, report: Any) -> None:
        longrepr = getattr(report, "longrepr", None)
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else ""
        self._kinds.setdefault(kind, {})[report.nodeid] = reason[:300]

    def _fail(self, node: str, when: str, report: Any) -> None:
        if len(self._failures) < _MOST_FAILURES:
            self._failures.append([node, when, str(report.longrepr)[-_LONGEST:]])


def _raised_in(error: BaseException) -> str:
    """The file whose own line raised an error, the import system left out."""
    files = []
    trace = error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return next((file for file in reversed(files) if not file.startswith("<frozen")), "")


if "PYTEST_XDIST_WORKER" not in os.environ and not sys.stdin.isatty():
    _report = Report(sys.stdin.readline().strip(), os.dup(1))

    def pytest_configure(config: Any) -> None:
        """Join the session."""
        config.pluginmanager.register(_report, "foundry-gate-report-sink")
