"""What the app's settings ask of pytest besides its tests, and what they miss. Beside `foundry_gate_report`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# What settings of the app would have pytest write beside its tests, into an app that is read-only, or demand of
# all tests together.
_BESIDE: tuple[tuple[str, Any], ...] = (
    ("basetemp", None),
    ("cov_source", []),
    ("htmlpath", None),
    ("log_file", os.devnull),
    ("max_warnings", sys.maxsize),
    ("xmlpath", None),
)
# What runs in other processes is under no control.
_ONE_PROCESS: tuple[tuple[str, Any], ...] = (("dist", "no"), ("numprocesses", None), ("tx", []))


def only_tests(option: Any) -> None:
    """Leave of the options those that are about tests, in this one process."""
    for name, value in (*_ONE_PROCESS, *_BESIDE):
        if hasattr(option, name):
            setattr(option, name, value)


def has_unknown(config: Any) -> bool:
    """Whether the app sets what no plugin that is loaded knows."""
    keys = getattr(config, "_get_unknown_ini_keys", None)
    return bool(keys and keys())


def left_out() -> list[str]:
    """The plugins that are installed and were not loaded, because they were not asked for."""
    if "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ:
        return []
    found = []
    for folder in sys.path:
        for told in Path(folder).glob("*-info/entry_points.txt"):
            section = told.read_text("utf-8", "replace").partition("[pytest11]")[2].partition("\n[")[0]
            found += [line.partition("=")[0].strip() for line in section.splitlines() if "=" in line]
    return sorted(set(found))
