"""Compile what stands on stdin with the interpreter that runs this, and write what came of it as JSON.

`{"version": [3, 11], "line": 0, "error": "", "warnings": [...]}`. Standard library only, Python 3.9 and later.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any


def judge(content: bytes, path: str) -> dict[str, Any]:
    """What this interpreter says of a module's text."""
    said: dict[str, Any] = {"version": list(sys.version_info[:2]), "line": 0, "error": ""}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(content, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            said["line"], said["error"] = error.lineno or 0, f"{type(error).__name__}: {error.msg}"
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            said["error"] = f"{type(error).__name__}: {error}"
    said["warnings"] = [f"line {one.lineno}: {one.message}" for one in caught]
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(judge(sys.stdin.buffer.read(), sys.argv[1])))
