"""Compile what stands on stdin with the interpreter that runs this, and write what came of it as JSON.

`{"version": [3, 11], "line": 0, "error": "", "warnings": [...]}`. Standard library only, for Python 3.8 and later.
"""

import json
import sys
import warnings


def judge(content, path):
    said = {"version": list(sys.version_info[:2]), "line": 0, "error": "", "warnings": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(content, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            said["line"], said["error"] = error.lineno or 0, "%s: %s" % (type(error).__name__, error.msg)
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            said["error"] = "%s: %s" % (type(error).__name__, error)
    said["warnings"] = ["line %d: %s" % (one.lineno, one.message) for one in caught]
    return said


if __name__ == "__main__":
    print(json.dumps(judge(sys.stdin.buffer.read(), sys.argv[1])))
