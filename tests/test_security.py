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


def names_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_the_document_makes_claims() -> None:
    assert len(claims()) >= 20
    assert all(len(row) == 3 for row in claims())


@pytest.mark.parametrize("row", claims(), ids=lambda row: row[0][:60])
def test_a_claim_names_tests_that_are_there(row: list[str]) -> None:
    claim, held_by, shown_by = row
    named = SHOWN.findall(shown_by)
    assert all((claim, held_by, named)), f"{claim}: no test is named"
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(ROOT / path)]
    assert not missing, f"{claim}: not in the suite: {missing}"


def declared_gaps() -> set[str]:
    """The names of all gaps that the sandboxes declare, whoever the user here is."""
    sources = (ROOT / "src" / "foundry_implementation_actor" / "sandbox").glob("*.py")
    calls = [
        node for source in sources for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)
    ]
    named = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Gap"]
    return {str(name.value) for name in named if isinstance(name, ast.Constant)}


def test_every_gap_of_a_sandbox_stands_in_the_document_and_no_other() -> None:
    [table] = re.findall(r"^\| sandbox \| who \| gap \|.*\n\|[-| ]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    told = [re.split(r" *\| *", row)[3].strip("`") for row in table.splitlines()]
    assert len(told) == len(set(told)) >= 15
    assert set(told) == declared_gaps()
