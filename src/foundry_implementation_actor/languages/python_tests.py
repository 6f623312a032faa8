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
_BROKE = "pytest broke before it read a test"
_USAGE = 4
_NOTHING = 5
# What a session says that misses a plugin which the app's tests need.
_ASKS_AGAIN = re.compile(
    r"fixture '\w+' not found|async def functions are not natively supported"
    r"|unrecognized arguments|Unknown config option"
)


def own_test(app: App, path: str, run: Run, *, original: bool = False) -> Tests:
    """Run one test file; see `port.Language`.

    Without a runner of the app's own, pytest first loads no plugin that is merely installed, which
    halves its start; it is asked again with all of them when the tests turn out to need one.
    """
    if app.runner:
        cacheless = any("no:cacheprovider" in one for one in app.runner)
        command, word = _command(app, path, app.runner if cacheless else (*app.runner, *_CACHE))
        return read(run(command, original=original), word)
    runner = (*app.interpreter, "-m", "pytest")
    command, word = _command(app, path, (*runner, *_LEAN))
    lean = run(replace(command, env={**command.env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}), original=original)
    tests = read(lean, word)
    if tests.green or not _ASKS_AGAIN.search(lean.text + lean.errors):
        return tests
    command, word = _command(app, path, (*runner, *_WHOLE))
    return read(run(command, original=original), word)


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


def read(completed: Completed, word: str) -> Tests:
    """What a run of pytest says, from the plugin's own lines."""
    said = [line.removeprefix(word).strip() for line in completed.text.splitlines() if line.startswith(f"{word} ")]
    if completed.ended is Ended.NOT_FOUND:
        return Tests(cause=f"the test runner {completed.argv[0]} is not there")
    if said[:1] != ["hello"]:
        return Tests(cause=_unloaded(completed))
    if completed.ended is Ended.TIMEOUT:
        return Tests(fault=f"the test did not end within {completed.seconds:.0f} s")
    if completed.ended is not Ended.EXIT:
        return Tests(fault=f"the test was ended: {completed.ended}")
    if len(said) != 2:
        return _silent(completed)
    return _tests(json.loads(said[1]), completed)


def _unloaded(completed: Completed) -> str:
    if "No module named pytest" in completed.errors:
        return "pytest is not installed for the app's interpreter"
    told = (completed.errors or completed.text.strip())[-300:]
    return f"the test runner did not start ({completed.ended}, {completed.code}): {told}"


def _silent(completed: Completed) -> Tests:
    """A session that began and gave no report: called wrongly by the app's settings, or ended by somebody."""
    if completed.code == _USAGE:
        return Tests(cause=_misused(completed))
    return Tests(fault=f"the test process ended with {completed.code} before its report")


def _misused(completed: Completed) -> str:
    return f"pytest cannot be used with the app's settings: {completed.errors.strip()[-300:]}"


def _tests(said: dict[str, Any], completed: Completed) -> Tests:
    failed = {node for node, _, _ in said["failures"]}
    lacks, evasions = said["lacks"], said["evasions"]
    # What the body kept from being asked is a failure, not a skipped test.
    evaded = [[node, "skip", f"the test was skipped from {where}"] for node, where in evasions.items()]
    failures = tuple(_failure(*failure) for failure in [*said["failures"], *evaded])
    asked = set(said["asked"]) - set(lacks)
    tests = Tests(
        collected=said["collected"] or 0,
        ran=said["ran"],
        passed=said.get("passed", 0),
        failures=failures,
        said=_counts(said),
        asked=frozenset(asked | {node.partition("::")[0] for node in asked}),
        unasked=frozenset(said["skipped_tests"]),
    )
    if said["tampered"]:
        fault = f"the test process was tampered with: {said['tampered']} does not fail where it has to"
        return replace(tests, failures=(), fault=fault)
    if not failures:
        return _whole(tests, said, completed)
    if failed <= set(lacks) and not evasions:
        needs = ", ".join(sorted(set(lacks.values())))
        return Tests(said=tests.said, cause=f"the test needs {needs}", asked=tests.asked, unasked=frozenset(failed))
    return tests


def _whole(tests: Tests, said: dict[str, Any], completed: Completed) -> Tests:
    """A session without a failure that still may not count."""
    status = said["status"]
    if said["broke"]:
        return Tests(cause=f"{_BROKE}: {said['broke']}")
    if status == _USAGE:
        return Tests(cause=_misused(completed))
    if said["collected"] is None or status not in {0, _NOTHING}:
        return Tests(tests.collected, tests.ran, fault=f"the test session was ended from within ({status})")
    if tests.ran != tests.collected:
        return Tests(tests.collected, tests.ran, fault=f"only {tests.ran} of {tests.collected} tests ran")
    if completed.code != status:
        return Tests(tests.collected, tests.ran, fault=f"the test process ended with {completed.code} after its report")
    return tests


def _failure(node: str, when: str, text: str) -> Finding:
    at = {"call": "", "setup": "set-up of ", "teardown": "tear-down of ", "collect": "collecting "}.get(when, "")
    name = node.partition("::")[2] or node
    return Finding("test", node.partition("::")[0], f"{at}{name}: {text.strip()}")


def _counts(said: dict[str, Any]) -> str:
    kinds = ("failed", "passed", "skipped", "xfailed", "xpassed", "deselected")
    counted = {**said, "failed": len({node for node, _, _ in said["failures"]})}
    counts = [f"{counted[kind]} {kind}" for kind in kinds if counted.get(kind)]
    return ", ".join(counts) or "no test"
