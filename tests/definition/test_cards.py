import subprocess
import sys
from pathlib import Path

from papeete_actor_synchronous_messaging import card

from foundry_implementation_actor.definition.cards import CARDS, cards_path, missing

STRING, LIST, BOOLEAN = {"type": "string"}, {"type": "array"}, {"type": "boolean"}
TASK = {"task_id": STRING, "title": STRING, "definition_of_done": LIST, "acceptance_surface": LIST, "context": STRING}


def test_the_frameworks_own_lint_passes_on_the_definition() -> None:
    command = "import sys; from papeete_actor_synchronous_messaging.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", command, "lint-card", str(cards_path())], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "0 warned" in ran.stdout


def test_the_data_items_are_those_of_the_contract_in_its_order() -> None:
    assert [(item.name, item.type) for item in card.load(cards_path()).data] == [
        ("task_id", "string"), ("title", "string"), ("context", "string"), ("definition_of_done", "list"),
        ("remediation_context", "string"), ("acceptance_surface", "list"), ("feasible", "boolean"),
        ("objections", "list"), ("commitments", "list"), ("accepted", "boolean"), ("because", "string"),
        ("branch", "string"), ("images", "list"),
    ]  # fmt: skip


def test_the_messages_are_those_of_the_contract() -> None:
    assert [(m.name, m.references, m.optional) for m in card.load(cards_path()).messages] == [
        ("assess-task-cmd", ("task_id", "title", "definition_of_done", "acceptance_surface", "context"), ("context",)),
        ("task-assessed-result", ("feasible", "objections", "commitments"), ("objections", "commitments")),
        (
            "implement-task-cmd",
            ("task_id", "title", "definition_of_done", "acceptance_surface", "context", "remediation_context"),
            ("acceptance_surface", "context", "remediation_context"),
        ),
        ("task-implemented-result", ("accepted", "branch", "images"), ()),
        ("task-refused-result", ("accepted", "because"), ()),
    ]


def test_implement_task_is_an_action_with_one_of_two_closed_completions() -> None:
    actions = card.load(cards_path()).actions
    assert list(actions) == ["implement-task"]
    door = actions["implement-task"]
    assert door.engine == "claude-code"
    assert door.request_schema == {
        "properties": TASK | {"remediation_context": STRING},
        "required": ["task_id", "title", "definition_of_done"],
        "additionalProperties": False,
    }
    assert door.completion_schema == (
        {
            "properties": {"accepted": BOOLEAN, "branch": STRING, "images": LIST},
            "required": ["accepted", "branch", "images"],
            "additionalProperties": False,
        },
        {
            "properties": {"accepted": BOOLEAN, "because": STRING},
            "required": ["accepted", "because"],
            "additionalProperties": False,
        },
    )


def test_assess_task_is_a_query_with_one_open_completion() -> None:
    queries = card.load(cards_path()).queries
    assert list(queries) == ["assess-task"]
    door = queries["assess-task"]
    assert door.engine == "claude-code"
    assert door.request_schema == {
        "properties": TASK,
        "required": ["task_id", "title", "definition_of_done", "acceptance_surface"],
        "additionalProperties": False,
    }
    assert door.completion_schema == (
        {"properties": {"feasible": BOOLEAN, "objections": LIST, "commitments": LIST}, "required": ["feasible"]},
    )


def test_the_cards_are_ascii_so_that_any_locale_reads_them() -> None:
    assert missing(cards_path()) == []
    assert all((cards_path() / name).read_bytes().isascii() for name in CARDS)


def test_nothing_in_the_package_names_a_capability_or_a_knowledge_tool() -> None:
    package = Path(__file__).resolve().parents[2] / "src"
    files = [path for path in package.rglob("*") if path.suffix in {".py", ".yaml", ".md", ".toml"}]
    assert len(files) > len(CARDS)
    found = [
        f"{path}: {word}"
        for path in files
        for word in ("kpack", "kontract", "acme", "sup.007", "urbanism")
        if word in path.read_text(encoding="utf-8").lower()
    ]
    assert found == []
