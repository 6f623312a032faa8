"""`assess`, as a person uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.cli.main import main
from support.place import Place

SURFACE = [{"id": "E1", "expectation": "it works"}, {"id": "E2", "expectation": "it is fast"}]
ASKED = {"task_id": "TASK-1", "title": "Add x", "definition_of_done": ["x is there"], "acceptance_surface": SURFACE}
FEASIBLE = {
    "feasible": True,
    "objections": [],
    "commitments": [
        {"id": "E1", "commitment": "GET /x is 200"},
        {"id": "E2", "commitment": "in a second", "by": "curl"},
    ],
}
NOT_FEASIBLE = {"feasible": False, "objections": [{"id": "E2", "why": "fast is no number"}], "commitments": []}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "place", local=True) as place:
        yield place


@pytest.fixture
def ask(place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask with a session that answers so; the exit code."""

    def ask(answer: dict[str, Any], *options: str, **fields: Any) -> int:
        for name, value in place.environment({"answer": answer}).items():
            monkeypatch.setenv(name, value)
        file = place.base / "task.json"
        file.write_text(json.dumps({**ASKED, **fields}))
        return main(["assess", str(place.folder), "--task", str(file), *options])

    return ask


def test_what_can_be_delivered_is_told_with_each_commitment(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(FEASIBLE) == 0
    out, err = capsys.readouterr()
    assert out == "feasible\ncommitment E1: GET /x is 200\ncommitment E2: in a second, by: curl\n"
    assert "  session …\n" in err


def test_what_cannot_be_delivered_is_exit_code_1_with_each_objection(
    ask: Any, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(NOT_FEASIBLE) == 1
    assert capsys.readouterr().out == "not feasible\nobjection E2: fast is no number\n"
    assert list(place.repo.branches()) == ["main"]


def test_json_is_the_reply_alone(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(FEASIBLE, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == FEASIBLE
    assert all(json.loads(line)["correlation_id"] for line in err.splitlines())


def test_an_answer_that_cannot_be_read_is_exit_code_1_and_shown(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask({"feasible": "perhaps"}) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: the session's answer cannot be used: its `feasible` is neither true nor false" in err


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"acceptance_surface": []}, "acceptance_surface must be a list with at least one expectation"),
        ({"acceptance_surface": [{"id": ""}]}, "acceptance_surface[0] must be an object with a non-empty string 'id'"),
        ({"remediation_context": "x"}, "field 'remediation_context' is not declared"),
        ({"task_id": "a/b"}, "task_id 'a/b' cannot be used"),
    ],
)
def test_a_question_that_cannot_be_put_is_exit_code_2(
    ask: Any, fields: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(FEASIBLE, **fields) == 2
    assert told in capsys.readouterr().err


def test_the_help_names_what_the_task_file_holds_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "--help"]) == 0
    shown = capsys.readouterr().out
    fields = ("task_id", "title", "definition_of_done", "acceptance_surface", "All four are required")
    assert all(words in shown for words in (*fields, "Exit codes: 0 feasible, 1 not", "Examples:"))
