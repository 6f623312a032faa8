"""Where a PHP body reaches for what runs its tests: a body that does can answer in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding

_PHPUNIT = re.compile(r"""['"]?\\*PHPUnit\\""", re.IGNORECASE)
_DESCRIPTORS = re.compile(r"""['"](php://fd|/proc/self/fd|/dev/fd)\b""", re.IGNORECASE)
_ARGV = re.compile(r"""\$(_SERVER|GLOBALS)\s*\[\s*['"]argv['"]""")
_AT_THE_END = "register_shutdown_function"


def reaches(candidate: Candidate, tree: Node, before: Node) -> list[Finding]:
    """The places where a body that is no test reaches for the test runner, and did not before.

    Args:
        candidate: the body; a test may use its runner.
        tree: of its content.
        before: of its original.
    """
    if candidate.place.is_test:
        return []
    known = {message for _, message in _places(before)}
    found = [(line, message) for line, message in _places(tree) if message not in known]
    return [Finding("reaches-tests", f"{candidate.place.path}:{line}", message) for line, message in found]


def _places(root: Node) -> Iterator[tuple[int, str]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        message = _fault(node)
        if message:
            yield node.start_point.row + 1, message
        else:
            waiting.extend(reversed(node.named_children))


def _fault(node: Node) -> str:
    """What a node does that only a test or what runs it may; empty when nothing."""
    text = (node.text or b"")[:200].decode("utf-8", "replace")
    if node.type in {"qualified_name", "string", "encapsed_string"} and _PHPUNIT.match(text):
        return "uses PHPUnit, which runs tests; only a test may, so take it out or move it into the test"
    if node.type in {"string", "encapsed_string"} and _DESCRIPTORS.match(text):
        return "opens descriptors of the process by number; those of a test run are its runner's"
    if node.type == "subscript_expression" and _ARGV.match(text):
        return "reads the command line; have it passed in"
    if node.type == "function_call_expression" and text.lstrip("\\").lower().startswith(_AT_THE_END):
        return f"calls {_AT_THE_END}, which runs after the tests have said what they found"
    return ""
