from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foundry_implementation_actor
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Cause, Door
from foundry_implementation_actor.engines.script import STEPS, read_script
from foundry_implementation_actor.engines.scripted import Scripted
from support.sessions import Stage

HEAD = "script: foundry-implementation-actor/script/v1\nsessions:\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def script(body: str) -> Scripted:
    return Scripted(read_script(HEAD + body, "script.yaml"))


SEVERAL = script("""\
- {door: assess-task, steps: [{answer: {feasible: true}}]}
- {task: TASK-1, attempt: 2, steps: [{say: mended}]}
- {task: TASK-1, remediation: true, steps: [{say: second try}]}
- {task: TASK-1, steps: [{say: first try}]}
- {door: implement-task, task: TASK-2, steps: [{say: another}]}
""")


@pytest.mark.parametrize(
    ("door", "order", "said"),
    [
        (Door.ASSESS, {}, '{"feasible": true}'),
        (Door.IMPLEMENT, {}, "first try"),
        (Door.IMPLEMENT, {"remediation": True}, "second try"),
        (Door.IMPLEMENT, {"remediation": True, "attempt": 2}, "mended"),
        (Door.IMPLEMENT, {"remediation": True, "attempt": 3}, "second try"),
        (Door.IMPLEMENT, {"task_id": "TASK-2", "remediation": True}, "another"),
    ],
)
def test_the_first_session_that_matches_the_order_is_played(
    stage: Stage, door: Door, order: dict[str, Any], said: str
) -> None:
    end = stage.drive(SEVERAL, stage.order(door, **order))
    assert (end.cause, end.text) == (Cause.FINISHED, said)


def test_an_order_without_a_session_is_an_error_that_names_it(stage: Stage) -> None:
    with pytest.raises(ActorError) as raised:
        stage.drive(SEVERAL, stage.order(task_id="TASK-9", remediation=True, attempt=2))
    assert (raised.value.code, raised.value.where) == (Code.UNFIT, "script.yaml")
    asked = "implement-task of task 'TASK-9' with remediation, attempt 2"
    assert raised.value.message == f"the script has no session for {asked}"
    assert "the script" in raised.value.hint


def test_what_is_started_is_no_file_of_the_package_which_may_lie_where_a_session_sees_nothing(stage: Stage) -> None:
    argv = SEVERAL.command(stage.order(task_id="TASK-2"), None).argv
    package = Path(foundry_implementation_actor.__file__).parent
    assert not [word for word in argv if Path(word.partition("\n")[0]).is_relative_to(package)]


def test_every_tool_step_really_acts_on_the_tree(stage: Stage) -> None:
    (stage.tree / "old").mkdir()
    (stage.tree / "old/file").write_text("one two one")
    (stage.tree / "gone").mkdir()
    engine = script(r"""
- steps:
  - write: {path: "a\nb é/new", content: "x\r\n"}
  - edit: {path: old/file, find: two, replace: '\1 $&'}
  - edit: {path: old/file, find: one, replace: three}
  - move: {from: old/file, to: new/place}
  - delete: gone
  - delete: missing
  - shell: printf "$HOME" > home
  - write: {path: ../outside, content: it may misbehave}
""")
    end = stage.drive(engine, stage.order())
    assert (end.cause, end.turns) == (Cause.FINISHED, 8)
    assert (stage.tree / "a\nb é/new").read_bytes() == b"x\r\n"
    assert (stage.tree / "new/place").read_text() == r"one \1 $& one"
    assert not (stage.tree / "gone").exists()
    assert (stage.tree / "home").read_text() == str(stage.base / "home")
    assert (stage.base / "outside").read_text() == "it may misbehave"
    assert [record["is_error"] for record in stage.recorded("session-tool-result")] == [
        False, False, True, False, False, True, False, False,
    ]  # fmt: skip


def test_the_player_needs_nothing_of_the_actors_environment(stage: Stage) -> None:
    command = SEVERAL.command(stage.order(), None)
    assert set(command.env) == {"HOME", "TMPDIR", "PATH", "LANG", "GIT_TERMINAL_PROMPT"}
    assert SEVERAL.secret(stage.order(credentials={"ANTHROPIC_API_KEY": "k"})) == b""
    assert b"first try" in (command.stdin or b"")
    assert not [word for word in command.argv if "first try" in word]
    assert max(map(len, command.argv)) < 131_072  # what Linux takes as one word


WRONG: list[tuple[str, str]] = [
    ("", "script.yaml: a script is a mapping"),
    ("[1]", "1:1: a script is a mapping"),
    ("a: [", "1:5: not readable as YAML"),
    ("a: 1\na: 2\n", "2:1: a: the key is written twice (first in line 1)"),
    ("\t", "1:1: not readable as YAML"),
    ("script: other\nsessions: [{steps: []}]", "1:1: script: write `script: foundry"),
    ("sessions: []", "1:1: sessions: must be a list with at least one session"),
    (HEAD, "2:1: sessions: must be a list"),
    (HEAD + "- 3", "3:3: session 1: must be a mapping with a list of `steps`"),
    (HEAD + "- {door: x, steps: []}", "3:4: session 1: door: must be one of implement-task, assess-task"),
    (HEAD + "- {task: 14, steps: []}", "3:4: session 1: task: must be a task id; quote it"),
    (HEAD + "- {remediation: maybe, steps: []}", "3:4: session 1: remediation: must be true or false"),
    *(
        (HEAD + f"- {{attempt: {value}, steps: []}}", "3:4: session 1: attempt: must be a whole number from 1")
        for value in ("0", "true", "-1", "1.0", "'1'")
    ),
    (HEAD + "- steps: []\n  stepz: 1", "4:3: session 1: stepz: is not known"),
    (HEAD + "- steps:\n  - say: a\n    shell: b", "4:5: session 1, step 1: must be a mapping with one key"),
    (
        HEAD + "- steps:\n  - say: ok\n  - jump: high",
        "5:5: session 1, step 2: 'jump' is no kind of step; known are say",
    ),
    (HEAD + "- steps: [{1: 2}]", "session 1, step 1: '1' is no kind of step"),
    (HEAD + "- steps: [{say: 3}]", "`say` must be given a text"),
    (HEAD + "- steps: [{write: {path: x}}]", "`write` must be given an object with `path` and `content`"),
    (HEAD + "- steps: [{write: {path: x, content: 3}}]", "`write` must be given an object with"),
    (HEAD + '- steps: [{delete: ""}]', "`delete` must be given a path"),
    (HEAD + "- steps: [{exit: -1}]", "`exit` must be given a whole number from 0"),
    (HEAD + "- steps: [{silence: false}]", "`silence` must be given true"),
    (HEAD + "- steps: [{answer: yes}]", "`answer` must be given an object"),
    (HEAD + "- steps: [{raw_base64: '!'}]", "`raw_base64` must be given a base64 text"),
    (HEAD + "- steps: [{result: {txet: a}}]", "`result` must be given an object with"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_wrong_script_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ActorError) as raised:
        read_script(text, "script.yaml")
    assert raised.value.code is Code.BAD_REQUEST
    assert str(raised.value).startswith("script.yaml:")
    assert told in str(raised.value)


def test_all_errors_of_a_script_are_told_at_once() -> None:
    with pytest.raises(ActorError) as raised:
        read_script(HEAD + "- steps: [{say: 1}, {jump: 2}]\n- {door: x, steps: [{exit: a}]}", "s.yaml")
    assert len(str(raised.value).splitlines()) == 4


def test_json_is_a_script_too() -> None:
    text = '{"script": "foundry-implementation-actor/script/v1", "sessions": [{"steps": [{"say": "hi"}]}]}'
    assert read_script(text, "-").sessions[0].steps == ({"say": "hi"},)


def test_the_documentation_shows_every_step_and_a_script_that_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs/script.md").read_text()
    assert [kind for kind in STEPS if f"`{kind}`" not in page] == []
    read_script(page.partition("```yaml\n")[2].partition("```")[0], "docs/script.md")


@given(st.text() | st.text("-:{}[]&*!|>'\"# \n\tab1", max_size=40).map(lambda text: HEAD + text))
def test_any_text_is_a_script_or_is_refused(text: str) -> None:
    with contextlib.suppress(ActorError):
        assert read_script(text, "s.yaml").sessions
