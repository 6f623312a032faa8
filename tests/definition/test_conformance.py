import shutil
from pathlib import Path

import pytest

from foundry_implementation_actor.definition import conformance
from foundry_implementation_actor.definition.cards import CARDS, DATA, DOORS, IDENTITY, MESSAGES, cards_path

DOOR = "the door 'implement-task'"


@pytest.fixture
def use(tmp_path: Path) -> Path:
    for name in CARDS:
        shutil.copy(cards_path() / name, tmp_path / name)
    return tmp_path


def change(use: Path, name: str, old: str, new: str) -> None:
    text = (use / name).read_text()
    assert old in text
    (use / name).write_text(text.replace(old, new))


def test_the_definition_conforms_to_itself() -> None:
    assert conformance.check(cards_path()).ok


def test_no_cards_at_all_are_fine(tmp_path: Path) -> None:
    report = conformance.check(tmp_path)
    assert report.ok
    assert "no cards" in report.oks[0]


def test_an_incomplete_set_names_what_is_missing(use: Path) -> None:
    (use / DATA).unlink()
    (use / IDENTITY).unlink()
    assert conformance.check(use).errors == [
        f"{use / IDENTITY}: the card is missing; run render-cards to write the cards again",
        f"{use / DATA}: the card is missing; run render-cards to write the cards again",
    ]


def test_prose_and_names_are_a_uses_own(use: Path) -> None:
    change(use, IDENTITY, "name: foundry-implementation-actor", "name: somebody-else")
    change(use, DATA, "What is to be done, in one line.", "Other words.")
    change(use, DOORS, "State the task", "Tell the task")
    change(use, MESSAGES, "[task_id, title, definition_of_done, acc", "[title, definition_of_done, task_id, acc")
    assert conformance.check(use).ok


@pytest.mark.parametrize(
    ("card", "old", "new", "expected"),
    [
        (DOORS, "id: assess-task", "id: assess", "the door 'assess' is not in the definition"),
        (DOORS, "id: assess-task", "id: assess", "the door 'assess-task' is missing"),
        (DOORS, "queries:", "more:\nqueries:", "unknown key 'more'"),
        (DOORS, "actions:", "queries:", f"{DOOR} is missing"),
        (DOORS, "engine: claude-code", "engine: other", f"{DOOR} names the engine 'other', not 'claude-code'"),
        (DOORS, "    engine: claude-code\n", "", f"{DOOR} names the engine None"),
        (DOORS, "door_schema: implement-task-cmd", "door_schema: assess-task-cmd", "without the field 'remediation_co"),
        (DOORS, "[task-implemented-result, task-refused-result]", "task-refused-result", "gives other completions"),
        (DOORS, "[task-implemented-result, task-refused-result]", "[task-refused-result]", "gives other completions"),
        (DOORS, "completion_schema: task-assessed-result", "completion_schema: [task-assessed-result]", "open where"),
        (DOORS, "    completion_schema: task-assessed-result\n", "", "the door 'assess-task' gives other completions"),
        (MESSAGES, "context, remediation_context]\n    optional", "remediation_context]\n    optional", "optional:"),
        (MESSAGES, "optional: [context]", "optional: [title]", "takes another request: where 'title' is optional"),
        (MESSAGES, "optional: [context]", "optional: [title]", "takes another request: where 'context' is required"),
        (MESSAGES, "[feasible, objections, commitments]", "[feasible, objections, commitments, because]", "'because'"),
        (MESSAGES, "[accepted, because]", "[accepted, because, branch]", "gives other completions"),
        (DATA, "name: title\n    type: string", "name: title\n    type: list", "with another type of 'title'"),
        (DATA, "name: title", "name: headline", "'title' resolves nowhere"),
        (DATA, "items:", "items: [", "cannot be loaded"),
        (IDENTITY, "name: foundry-implementation-actor", "title: x", "missing required key 'name'"),
    ],
)
def test_a_drift_on_the_wire_is_named(use: Path, card: str, old: str, new: str, expected: str) -> None:
    change(use, card, old, new)
    report = conformance.check(use)
    assert any(expected in error for error in report.errors), report.errors
    assert all(error.startswith(str(use)) and "\n" not in error for error in report.errors)
    assert all(error.endswith("; run render-cards to write the cards again") for error in report.errors)


def test_a_door_that_moved_to_the_other_list_is_named(use: Path) -> None:
    change(use, DOORS, "actions:", "swap:")
    change(use, DOORS, "queries:", "actions:")
    change(use, DOORS, "swap:", "queries:")
    errors = conformance.check(use).errors
    assert any("'implement-task' is an entry of queries, not of actions" in error for error in errors)
    assert any("'assess-task' is an entry of actions, not of queries" in error for error in errors)


@pytest.mark.parametrize(
    "content", [b"", b"- 1", b"\xff\xfe", b"[" * 500, b"a: *b", b"manifest: [1]", b"!!python/name:os.x a"]
)
@pytest.mark.parametrize("name", CARDS)
def test_a_malformed_card_is_reported_and_not_raised(use: Path, name: str, content: bytes) -> None:
    (use / name).write_bytes(content)
    errors = conformance.check(use).errors
    assert errors
    assert all("\n" not in error for error in errors)


def test_a_directory_or_a_dangling_link_in_place_of_a_card_is_reported(use: Path) -> None:
    (use / DATA).unlink()
    (use / DATA).symlink_to("nowhere")
    assert "no such file" in conformance.check(use).errors[0]
    (use / DOORS).unlink()
    (use / DOORS).mkdir()
    assert "cannot be loaded" in conformance.check(use).errors[0]
