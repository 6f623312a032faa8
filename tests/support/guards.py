"""What holds for every test: a home of its own, a clean environment, no child left, no quiet skip."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from support import children

# Everything else goes: tokens, and any variable that steers git or the coding engine.
_KEPT = frozenset({"PATH", "LANG", "TERM", "TMPDIR", "TZ", "CI", "COLUMNS"})
_KEPT_PREFIXES = ("PYTEST_", "PYTHON", "COVERAGE_", "HYPOTHESIS_")


def pytest_configure(config: pytest.Config) -> None:
    for name in [name for name in os.environ if name not in _KEPT and not name.startswith(_KEPT_PREFIXES)]:
        del os.environ[name]
    os.environ.update(HOME=os.devnull, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull, GIT_TERMINAL_PROMPT="0")
    children.adopt_orphans()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory that no other test has seen; $HOME points to it."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Outermost, so that every fixture has had its turn to end what it started."""
    try:
        yield
    finally:
        left = children.leftovers()
    if left:
        pytest.fail("left running: " + "; ".join(f"{child.pid} {child.command}" for child in left), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure where CI=true: there, what is not run is not known to work."""
    if os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"CI=true allows no skip: {reason}"
