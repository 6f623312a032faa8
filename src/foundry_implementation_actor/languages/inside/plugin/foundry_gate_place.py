"""Whose code an error came from: the app's, its tests', or what runs them. Beside `foundry_gate_report`."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

_INSTALLED = ("site-packages", "dist-packages")
_RUNNING = ("_pytest", "pluggy", "unittest")
_SAYS_SO = ("skip", "xfail")


class Place:
    """Where the app and its tests lie: whose code a traceback leads through.

    Args:
        root: the app's root.
        tests: its test folder; empty when the tests lie among the sources.
        asked: the test file that is run, below the root.
    """

    def __init__(self, root: str, tests: str, asked: str) -> None:
        self._root = f"{root}/"
        self._asked = f"{root}/{asked}"
        self._tests = f"{root}/{tests}/" if tests else ""

    def is_tests_own(self, frames: list[tuple[str, int]]) -> bool:
        """Whether a traceback leads through none of the app's code but its tests."""
        return not any(self.is_apps(file) for file, _ in frames)

    def evades(self, error: BaseException) -> str:
        """The place from which a test was skipped that is not the test's own; empty when it is."""
        frames = frames_of(error)
        while not frames and error.__context__ is not None:
            # unittest catches what skips and raises another; who skipped stands in the first.
            error = error.__context__
            frames = frames_of(error)
        if isinstance(error.__context__, BaseException) and skips(error.__context__):
            frames = [*frames, *frames_of(error.__context__)]
        for file, line in frames:
            if self.is_apps(file):
                return f"{file.removeprefix(self._root)}:{line}"
        outer = [(file, line) for file, line in frames if not is_pytests(file)]
        file, line = outer[-1] if outer else ("", 0)
        if self._holds(file) and not _says_so(file, line):
            return f"{file.removeprefix(self._root)}:{line}, where no test asks for it"
        return ""

    def through(self, error: BaseException) -> list[str]:
        """The app's files, tests apart, that an error led through or speaks of, below the app's root."""
        files: set[str] = set()
        for one in _chain(error):
            files.update(file for file, _ in frames_of(one))
            files.update(_spoken_of(one))
        return sorted(file.removeprefix(self._root) for file in files if self.is_apps(file))

    def is_tests(self, error: BaseException) -> bool:
        """Whether an error led through the test file that is run."""
        return any(file == self._asked for one in _chain(error) for file, _ in frames_of(one))

    def is_elsewheres(self, error: BaseException) -> bool:
        """Whether neither the app nor its tests had a part in an error, nor is it pytest's word on a test."""
        if type(error).__module__.startswith("_pytest") and not isinstance(error, Warning):
            return False
        files = [file for one in _chain(error) for file, _ in frames_of(one)]
        return bool(files) and not any(self._holds(file) for file in files)

    def is_apps(self, file: str) -> bool:
        """Whether a file is the app's and no test."""
        if not self._holds(file):
            return False
        name = Path(file).name
        test = name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
        return not (file.startswith(self._tests) if self._tests else test) and name != "conftest.py"

    def _holds(self, file: str) -> bool:
        return file.startswith(self._root) and not _is_installed(file)


def skips(error: BaseException) -> bool:
    """Whether an exception skips a test or expects it to fail."""
    return type(error).__name__ in {"Skipped", "SkipTest", "XFailed"} or isinstance(
        error, (pytest.skip.Exception, pytest.xfail.Exception)
    )


def _is_installed(file: str) -> bool:
    return any(f"{os.sep}{folder}{os.sep}" in file for folder in _INSTALLED)


def is_pytests(file: str) -> bool:
    """Whether a file belongs to what runs the tests."""
    return (
        any(f"{os.sep}{package}{os.sep}" in file for package in _RUNNING) or Path(file).parent == Path(__file__).parent
    )


def _says_so(file: str, line: int) -> bool:
    """Whether a line of a test names what it does; a frame may bear the name of a file that it is not from."""
    try:
        lines = Path(file).read_bytes().lower().splitlines()
    except OSError:
        return False
    return 0 < line <= len(lines) and any(word.encode() in lines[line - 1] for word in _SAYS_SO)


def frames_of(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame of a traceback, outermost first."""
    found = []
    trace: types.TracebackType | None = error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _chain(error: BaseException) -> list[BaseException]:
    """An error and those that it was raised from, or over."""
    found: list[BaseException] = []
    after: BaseException | None = error
    while after is not None and after not in found:
        found.append(after)
        after = after.__cause__ or after.__context__
    return found


def _spoken_of(error: BaseException) -> Iterator[str]:
    """The files of what an error says to lack a name; Python 3.10 and later know the object."""
    if isinstance(error, ImportError) and error.path:
        yield error.path
    lacking = getattr(error, "obj", None)
    if isinstance(lacking, types.ModuleType):
        yield str(vars(lacking).get("__file__"))
    elif lacking is not None:
        owner = lacking if isinstance(lacking, type) else type(lacking)
        yield str(getattr(sys.modules.get(str(owner.__module__)), "__file__", None))
