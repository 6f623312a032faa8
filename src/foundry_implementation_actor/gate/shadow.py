"""Modules that would come before those the judges' own tools load: the app's import folders are searched first."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath

from foundry_implementation_actor.gate.settings import PYTHON, Settings

# Nothing loads the tests that come with Python, and many an app calls its folder of tests so.
_TOOLS = sys.stdlib_module_names - {"test"} | {"sitecustomize", "usercustomize", "pytest", "_pytest"}


def shadowed(settings: Settings, path: str, module: str, *, is_test: bool = False) -> str:
    """Why a file can be neither made nor judged; empty when it can.

    Python loads `sitecustomize` by itself, and pytest loads much of the standard library: a module of such
    a name would run in the judge's place, not as what is judged.

    Args:
        settings: how the app is laid out.
        path: the file, below the root.
        module: its dotted name, as the layout gives it.
        is_test: whether it lies in the test tree; pytest puts a test's own folder first.
    """
    if settings.language != PYTHON:
        return ""
    first = {module.partition(".")[0], *((PurePosixPath(path).stem,) if is_test else ())}
    name = next(iter(first & _TOOLS), "")
    return f"{path} would be the module {name}, which Python or pytest loads itself; rename it" if name else ""
