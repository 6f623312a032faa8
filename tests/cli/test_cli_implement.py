"""`implement`, as a person uses it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.cli.main import main
from support.place import Place, Step, task, write
from support.repos import SIDECAR
from support.serving import PROGRAM
from support.terminal import on_terminal

ADDED = write("backend/new.py")
SAID = {"say": "I am done."}
YAML = "task_id: TASK-1\ntitle: Add x\ndefinition_of_done:\n- x is there\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "place", local=True) as place:
        yield place


class Person:
    """Types commands and reads what comes."""

    def __init__(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], door: str
    ) -> None:
        self._place, self._monkeypatch, self._capsys, self._door = place, monkeypatch, capsys, door
        self.steps: tuple[Step, ...] = (ADDED, SAID)
        self.out = self.err = ""

    def types(self, *options: str, stdin: bytes = b"", settings: Mapping[str, str] = {}) -> int:
        """The command with these options; its exit code. What it wrote is in `out` and `err`."""
        for name, value in self._place.environment(*self.steps, **settings).items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([self._door, str(self._place.folder), *options])
        self.out, self.err = self._capsys.readouterr()
        return code

    def gives(self, content: str | bytes, *options: str, **settings: str) -> int:
        """The command with a task file of this content."""
        self.file = self._place.base / "task.yaml"
        self.file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.types("--task", str(self.file), *options, settings=settings)


@pytest.fixture
def person(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return Person(place, monkeypatch, capsys, "implement")


def test_a_task_is_followed_on_stderr_and_its_branch_is_named_on_stdout(person: Person, place: Place) -> None:
    assert person.gives(YAML) == 0
    assert person.out == "accepted: impl/TASK-1\n"
    told = person.err.splitlines()
    assert "  session …" in told
    assert '  Write {"file_path": "backend/new.py", "content": "x = 1\\n"}' in told
    assert "  I am done." in told
    assert f"  pushed impl/TASK-1 at {place.repo.sha('refs/heads/impl/TASK-1')[:12]}" in told
    assert told[-1] == "  images are off: none is built or published for backend"
    assert "\x1b" not in person.err


def test_the_same_task_again_is_answered_without_a_session(person: Person) -> None:
    assert person.gives(YAML) == person.gives(YAML) == 0
    assert person.out == "accepted: impl/TASK-1\n"
    assert "  impl/TASK-1 already holds the answer to this request\n" in person.err
    assert "session" not in person.err


def test_a_changed_request_says_that_it_replaces_the_tasks_branch(person: Person, place: Place) -> None:
    assert person.gives(YAML) == 0
    first = place.repo.sha("refs/heads/impl/TASK-1")
    person.steps = (write("backend/other.py"),)
    assert person.gives(YAML.replace("Add x", "Add y")) == 0
    assert f"  starts anew, to replace impl/TASK-1 at {first[:12]}\n" in person.err
    assert "check-images" not in person.err
    assert place.repo.git("diff", "--name-only", "main", "impl/TASK-1") == "backend/other.py"


@pytest.mark.parametrize("as_yaml", [True, False])
def test_a_task_from_stdin_with_json_puts_the_reply_alone_on_stdout_and_records_on_stderr(
    person: Person, *, as_yaml: bool
) -> None:
    given = YAML if as_yaml else json.dumps(task(), indent="\t")
    assert person.types("--task", "-", "--json", stdin=given.encode()) == 0
    assert person.out == '{"accepted": true, "branch": "impl/TASK-1", "images": []}\n'
    records = [json.loads(line) for line in person.err.splitlines()]
    assert {"check", "session", "push"} <= {record["step"] for record in records if record["event"] == "step"}


def test_json_that_yaml_would_misread_is_read_as_json(person: Person, place: Place) -> None:
    title = "Tab, \U0001f600 and café"
    text = json.dumps(task(title=title), indent="\t")
    assert r"\ud83d\ude00" in text
    assert person.gives(text, "--json") == 0
    assert title in place.repo.git("show", "-s", "--format=%B", "impl/TASK-1")


def test_a_refused_task_is_exit_code_1_and_its_reason_the_answer(person: Person, place: Place) -> None:
    person.steps = (write("README.md"),)
    assert person.gives(YAML) == 1
    assert person.out.startswith("refused: the change was refused and nothing of it was pushed: README.md: ")
    assert list(place.repo.branches()) == ["main"]


def test_what_was_kept_of_a_refused_task_is_told_with_its_whole_path(person: Person, place: Place) -> None:
    person.steps = (ADDED, write("README.md"))
    folder = place.base / ("a-long-name-" * 12)
    assert person.gives(YAML, RUN_ARTIFACTS=str(folder)) == 1
    [patch] = folder.glob("*.patch")
    assert f"  the change is kept as {patch}\n" in person.err
    assert f"; the change is kept as {patch.name} in RUN_ARTIFACTS" in person.out


def test_a_session_that_is_cut_off_is_exit_code_1_and_told_once(person: Person) -> None:
    person.steps = ({"silence": True},)
    assert person.gives(YAML, SESSION_TIMEOUT_S="1") == 1
    assert person.out == ""
    assert person.err.count("raise SESSION_TIMEOUT_S (now 1)") == 1
    assert "\n  session failed after 1." in person.err
    said, hint = person.err.splitlines()[-2:]
    assert said.startswith("error: implement-task: the session used up its budget of 1 seconds; the work was cut off")
    assert hint == "hint: raise SESSION_TIMEOUT_S (now 1), or make the task smaller"


WRONG: list[tuple[str | bytes, str]] = [
    ("", "FILE: holds no task\nhint: write an object with task_id, title, definition_of_done"),
    ("- TASK-1\n", "FILE: holds no task"),
    ("task_id: T\n\ttitle: x\n", "FILE:2:1: not readable as YAML: a tab\nhint: indent with spaces"),
    ("task_id: T\ntitle: a: b\n", "FILE:2:9: not readable as YAML: a second `: ` in one value"),
    (YAML + "title: y\n", "FILE:5:1: title: the key is written twice (first in line 2)"),
    (YAML + "context: !!python/object:os.system x\n", "FILE:5:10: context: the tag "),
    (YAML + "context: &a [*a]\n", "FILE:5:14: the alias *a names no anchor"),
    (YAML + f"context: {'[' * 40}\n", "FILE:5:41: nested deeper than 32 levels"),
    ('{"task_id": "T",\n\t"title": }', "FILE:2:11: not readable as JSON: Expecting value"),
    ('{"task_id": "T", "task_id": "U"}', "FILE:1:18: task_id: the key is written twice"),
    (b"title: caf\xe9\n", "FILE:1:11: byte 0xe9 is not UTF-8\nhint: save the file as UTF-8"),
    ("context: " + "x" * 1024 * 1024, "FILE: is larger than 1,048,576 bytes"),
    (YAML + "extra: 1\n", "field 'extra' is not declared\nhint: the fields are task_id, title, definition_of_done"),
    (YAML + "Remediation-Contxt: x\n", "hint: did you mean `remediation_context` instead of `Remediation-Contxt`?"),
    (YAML.replace("title", "titel"), "hint: did you mean `title` instead of `titel`?\n"),
    ('{"from": "me", "payload": {"task_id": "T"}}', "FILE: holds the whole body of an HTTP request\nhint: give "),
    ("task_id: TASK-1\n", "missing required field 'title'; missing required field 'definition_of_done'"),
    (YAML.replace("TASK-1", "14"), "'task_id' must be string, got int\nhint: put the value of task_id in quotes\n"),
    ("task_id: T\ntitle: x\ndefinition_of_done: []\n", "definition_of_done must be a list with at least one criterion"),
    ("task_id: T\ntitle: x\ndefinition_of_done: [true, 3]\n", "hint: put the value of definition_of_done[0] in quotes"),
    (YAML.replace("- x is there", "- ''"), "definition_of_done[0] must be a non-empty string, not a string\nhint: "),
]


@pytest.mark.parametrize(("content", "told"), WRONG, ids=lambda value: repr(value[:24]))
def test_a_task_that_cannot_be_read_is_exit_code_2_and_says_where(person: Person, content: str, told: str) -> None:
    assert person.gives(content) == 2
    assert person.out == ""
    assert person.err.startswith("error: ")
    assert told.replace("FILE", str(person.file)) in person.err
    assert "Traceback" not in person.err


def test_what_looks_like_a_number_or_a_word_of_yaml_stays_the_text_that_it_is(person: Person) -> None:
    assert person.gives("task_id: 0012\ntitle: yes\ndefinition_of_done: [1:30, 2026-01-02, on]\n", "--json") == 0
    assert json.loads(person.out)["branch"] == "impl/0012"


@pytest.mark.parametrize(
    ("name", "told"),
    [("none.yaml", "cannot be read: No such file or directory"), ("", "cannot be read: "), ("a\0b", "can hold a NUL")],
)
def test_a_task_file_that_is_not_there_is_exit_code_2(person: Person, name: str, told: str) -> None:
    assert person.types("--task", name) == 2
    assert told in person.err
    assert "hint: " in person.err


def test_without_a_task_the_usage_is_shown(person: Person) -> None:
    assert person.types() == 2
    assert person.err.startswith("Usage: foundry-implementation-actor implement ")
    assert "--task" in person.err


def test_a_folder_without_a_sidecar_is_exit_code_2(person: Person, place: Place) -> None:
    (place.folder / "actor-agentic-context.yaml").unlink()
    assert person.gives(YAML) == 2
    assert f"error: {place.folder}/actor-agentic-context.yaml: no such file\n" in person.err


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"MAX_TURNS": "many"}, "MAX_TURNS must be a positive integer"),
        ({"GITHUB_TOKEN": "", "GIT_BASE_URL": "https://forge.example"}, "GITHUB_TOKEN is not set\nhint: "),
        ({"SESSION_ENGINE": "claude-code", "PATH": "/usr/bin:/bin"}, "the program 'claude' was not found"),
    ],
)
def test_a_host_that_is_not_fit_is_exit_code_3(person: Person, settings: dict[str, Any], told: str) -> None:
    assert person.gives(YAML, **settings) == 3
    assert told in person.err


def test_a_script_that_cannot_be_read_is_told_in_words(person: Person, place: Place) -> None:
    assert person.gives(YAML, SESSION_SCRIPT=str(place.base / "none.yaml")) == 3
    assert person.err == (
        f"error: {place.base}/none.yaml: SESSION_SCRIPT cannot be read: No such file or directory\n"
        "hint: set SESSION_SCRIPT to a script that can be read\n"
    )


def test_a_script_without_a_session_for_the_task_is_named_with_what_to_do(person: Person, place: Place) -> None:
    person.steps = ({"task": "ANOTHER", "steps": [SAID]},)
    assert person.gives(YAML) == 3
    said, hint = person.err.splitlines()[-2:]
    assert said.startswith(f"error: {place.base}/script-")
    assert said.endswith("the script has no session for implement-task of task 'TASK-1'")
    assert hint.startswith("hint: add one to the script")


def test_no_images_needs_no_registry_and_images_are_asked_for_before_a_session(person: Person) -> None:
    assert person.gives(YAML, IMAGES="on") == 3
    assert "IMAGE_REGISTRY" in person.err
    assert "session" not in person.err
    assert person.gives(YAML, "--no-images", IMAGES="on") == 0


def test_colours_are_for_a_terminal_and_not_with_no_color(tmp_path: Path) -> None:
    fetching = SIDECAR.replace(
        "ground_in: []", "ground_in: [{name: a, answers: b, fetch: [echo, c], into: d, load: eager}]"
    )
    with Place(tmp_path / "place", local=True, sidecar=fetching) as place:
        argv = [*PROGRAM, "implement", str(place.folder), "--task", str(tmp_path / "task.yaml")]
        (tmp_path / "task.yaml").write_text(YAML)
        environment = place.environment(ADDED)
        assert "\x1b[1mfetch\x1b[0m " in on_terminal(argv, environment)
        plain = on_terminal(argv, {**environment, "NO_COLOR": "1", "ACTOR_STATE": str(tmp_path / "other")})
    assert "mirror " in plain
    assert "\x1b" not in plain
