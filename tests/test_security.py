"""The threat model's claims: each names the tests that show it, and each of those tests is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "security.md").read_text()
SHOWN = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def claims() -> list[list[str]]:
    """The rows of every table of claims, each as its cells: claim, what holds it, what shows it."""
    tables = re.findall(r"^\| claim \|.*\n\|[-| ]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for t in tables for row in t.splitlines()]


def tests_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_the_document_makes_claims() -> None:
    assert len(claims()) >= 20
    assert all(len(row) == 3 for row in claims())


@pytest.mark.parametrize("row", claims(), ids=lambda row: row[0][:60])
def test_a_claim_names_tests_that_are_there(row: list[str]) -> None:
    claim, held_by, shown_by = row
    named = SHOWN.findall(shown_by)
    assert all((claim, held_by, named)), f"{claim}: no test is named"
    missing = [f"{path}::{name}" for path, name in named if name not in tests_in(ROOT / path)]
    assert not missing, f"{claim}: not in the suite: {missing}"
