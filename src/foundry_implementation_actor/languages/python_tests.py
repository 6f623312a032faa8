"""One test file under pytest: how it is run, and what its report says. Never the exit code alone."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.port import Tests
from foundry_implementation_actor.languages.python_place import INSIDE, environment, import_roots

_PLUGIN = "foundry_gate_report"
_OPTIONS = ("-p", _PLUGIN, "-q", "--tb=short", "--color=no")
# An option in the app's settings that belongs to a plugin which is not loaded is no reason to stop.
_LENIENT = ("-W", "ignore::pytest.PytestConfigWarning")
_LEAN = (*_LENIENT, "-p", "no:cacheprovider")
# The app is read-only for its test, and where warnings are errors, a cache that cannot be written is one.
_CACHE = ("-o", "cache_dir=/tmp/pytest-cache")
_WHOLE = (*_LENIENT, *_CACHE)
_BROKE = "pytest is broken by the app's configuration"
_USAGE = 4
_NOTHING = 5
# What a session says that misses a plugin which the app's tests need.
_ASKS_AGAIN = re.compile(
    r"fixture '\w+' not found|async def functions are not natively supported"
    r"|not found in `markers` configuration option|Unknown pytest\.mark\."
)
# Plugins that do nothing to a test without a fixture, a mark or an option of theirs.
_IDLE = frozenset({"anyio", "asyncio", "hypothesispytest", "pytest_cov", "pytest_mock", "xdist", "xdist.looponfail"})
_ERROR = re.compile(r"^(?:ERROR: (?!usage:)|.*?: error: )(.+)", re.MULTILINE)


def own_test(app: App, path: str, run: Run, *, original: bool = False) -> Tests:
    """Run one test file; see `port.Language`.

    Without a runner of the app's own, pytest first loads no plugin that is merely installed, which
    halves its start; it is asked again with all of them when the tests cannot be asked, or are red where
    a plugin may be what they need.
    """
    if app.runner:
        cacheless = any("no:cacheprovider" in one for one in app.runner)
        command, word = _command(app, path, app.runner if cacheless else (*app.runner, *_CACHE))
        return read(run(command, original=original), word)
    runner = (*app.interpreter, "-m", "pytest")
    command, word = _command(app, path, (*runner, *_LEAN))
    lean = run(replace(command, env={**command.env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}), original=original)
    tests = read(lean, word)
    misses = _misses(tests, lean, word)
    if not misses and (original or not _may_miss(tests, lean, word)):
        return tests
    command, word = _command(app, path, (*runner, *_WHOLE))
    whole = read(run(command, original=original), word)
    return tests if whole.cause and not misses else whole


def _command(app: App, path: str, runner: Sequence[str]) -> tuple[Command, str]:
    """A run of one file, and the word that its report begins with."""
    word = secrets.token_hex(16)
    env = environment(app, [*import_roots(app), INSIDE / "plugin"])
    argv = (*runner, *_OPTIONS, path)
    return Command(argv, app.root, env, app.test_timeout_s, stdin=f"{word} {_test_folder(app)}\n".encode()), word


def _test_folder(app: App) -> str:
    """The folder in which every file is the tests'; empty when the app's sources lie in it too."""
    tests, source = PurePosixPath(app.tests), PurePosixPath(app.source)
    return "" if not tests.parts or source.is_relative_to(tests) else str(tests)


def _misses(tests: Tests, lean: Completed, word: str) -> bool:
    """Whether a run without plugins could not be, or says that it is red for want of one."""
    if tests.cause:
        return lean.ended is Ended.EXIT and not _lacks_pytest(lean)
    red = bool(tests.failures or tests.broken)
    return red and bool(_report(lean, word)["unknown"] or _ASKS_AGAIN.search(lean.text + lean.errors))


def _may_miss(tests: Tests, lean: Completed, word: str) -> bool:
    """Whether a red run left out a plugin that may act on any test; a scaffold is red by nature."""
    return bool(tests.failures) and not _IDLE.issuperset(_report(lean, word)["left_out"])


def _report(completed: Completed, word: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_said(completed, word)[-1])
    return found


def _said(completed: Completed, word: str) -> list[str]:
    """The plugin's own lines."""
    return [line.removeprefix(word).strip() for line in completed.text.splitlines() if line.startswith(f"{word} ")]


def read(completed: Completed, word: str) -> Tests:
    """What a run of pytest says, from the plugin's own lines."""
    said = _said(completed, word)
    if completed.ended is Ended.NOT_FOUND:
        return Tests(cause=f"the test runner {completed.argv[0]} is not there")
    if said[:1] != ["hello"]:
        return Tests(cause=_unloaded(completed))
    if completed.ended is Ended.TIMEOUT:
        return Tests(fault=f"the test did not end within {completed.seconds:.0f} s")
    if completed.ended is not Ended.EXIT:
        return Tests(fault=f"the test was ended: {completed.ended}")
    if len(said) < 2:
        return _silent(completed)
    return _tests(_report(completed, word), completed)


def _unloaded(completed: Completed) -> str:
    if _lacks_pytest(completed):
        return "pytest is not installed for the app's interpreter; gate doctor names what mends it"
    told = _told(completed)
    if completed.code == _USAGE or "Error importing plugin" in told:
        return f"{_BROKE}: {told}"
    return f"the test runner did not start ({completed.ended}, {completed.code}): {told}"


def _lacks_pytest(completed: Completed) -> bool:
    return "No module named pytest" in completed.errors


def _silent(completed: Completed) -> Tests:
    """A session that began and gave no report: called wrongly by the app's settings, or ended by somebody."""
    if completed.code == _USAGE:
        return Tests(cause=f"{_BROKE}: {_told(completed)}")
    return Tests(fault=f"the test process ended with {completed.code} before its report")


def _told(completed: Completed) -> str:
    """What pytest says on its way out: its own word for an error, else the last line."""
    told = completed.errors or completed.text.strip()
    found = _ERROR.search(told)
    return (found[1] if found else told.rpartition("\n")[2].removeprefix("E   ")).strip()[:300]


def _tests(said: dict[str, Any], completed: Completed) -> Tests:
    lacks, evasions = said["lacks"], said["evasions"]
    broken = {node: f"{_BROKE}: {told}" for node, told in said["elsewheres"].items()}
    # What the body kept from being asked is a failure, not a skipped test.
    evaded = [[node, "skip", f"the test was skipped from {where}"] for node, where in evasions.items()]
    red = [failure for failure in said["failures"] if failure[0] not in broken]
    failures = tuple(_failure(*failure) for failure in [*red, *evaded])
    asked = set(said["asked"]) - set(lacks)
    tests = Tests(
        collected=said["collected"] or 0,
        ran=said["ran"],
        passed=said.get("passed", 0),
        failures=failures,
        cause=f"{_BROKE}: {said['broke']}" if said["broke"] else "",
        said=_counts(said),
        asked=frozenset(asked | {node.partition("::")[0] for node in asked}),
        unasked=frozenset(said["skipped_tests"]),
        through=frozenset(said["through"]),
        broken=broken,
    )
    if said["tampered"]:
        fault = f"the test process was tampered with: {said['tampered']} does not fail where it has to"
        return replace(tests, failures=(), fault=fault)
    failed = set(said["failed"]) - set(broken)
    if failed and failed <= set(lacks) and not evasions:
        needs = ", ".join(sorted(set(lacks.values())))
        return replace(tests, failures=(), cause=f"the test needs {needs}", unasked=frozenset(failed))
    return tests if failures or broken else _whole(tests, said, completed)


def _whole(tests: Tests, said: dict[str, Any], completed: Completed) -> Tests:
    """A session without a failure that still may not count."""
    status = said["status"]
    if tests.cause:
        return tests
    if status == _USAGE:
        return Tests(cause=f"{_BROKE}: {_told(completed)}")
    if said["collected"] is None or status not in {0, _NOTHING}:
        return Tests(tests.collected, tests.ran, fault=f"the test session was ended from within ({status})")
    if tests.ran != tests.collected:
        return Tests(tests.collected, tests.ran, fault=f"only {tests.ran} of {tests.collected} tests ran")
    if completed.code != status:
        return Tests(tests.collected, tests.ran, fault=f"the test process ended with {completed.code} after its report")
    return tests


def _failure(node: str, when: str, text: str) -> Finding:
    at = {"call": "", "setup": "set-up of ", "teardown": "tear-down of ", "collect": "collecting "}.get(when, "")
    path, _, name = node.partition("::")
    text = text.strip()
    first = re.match(rf"({re.escape(path)}:\d+): in .*\n", text)
    # The line of the test stands where a reader looks for it, before everything else.
    where, text = (first[1], text[first.end() :].strip()) if first else (path, text)
    return Finding("test", where, f"{at}{name or node}: {text}")


def _counts(said: dict[str, Any]) -> str:
    kinds = ("failed", "passed", "skipped", "xfailed", "xpassed", "deselected")
    counted = {**said, "failed": len(said["failed"])}
    counts = [f"{counted[kind]} {kind}" for kind in kinds if counted.get(kind)]
    return ", ".join(counts) or "no test"
