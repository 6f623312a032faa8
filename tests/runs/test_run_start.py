"""Before a session: what is checked, what it is grounded in, and who joins whom."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from support.place import BRANCH, READER, Place, shell, write

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def unfit(place: Place, *steps: dict[str, object], **settings: str) -> str:
    """The error of a task that could not be begun; no session ran and nothing was pushed."""
    before = place.repo.branches()
    with pytest.raises(ActorError) as raised:
        place.run(*(steps or (write(NEW),)), settings=settings)
    assert raised.value.code is Code.UNFIT
    assert not place.session_ran
    assert place.repo.branches() == before
    return str(raised.value)


TASK_IDS = [
    "a/b", "../../x", "--force", "T`id`", "a\0b", "x" * 65, "x" * 500, "with space", "日本", "", ".hidden", "a..b",
    "ends.", "ends.lock", "-x", "a\nb", "a~1", "a^", "a:b", "a?b", "a*b", "a[b", "a\\b", "@{-1}", "a@{b}",
    "refs/heads/main", "$(id)", "é", "\u202ea", "a\u0301", "T-1\n", " T-1",
]  # fmt: skip


@pytest.mark.parametrize("task_id", TASK_IDS)
def test_a_task_id_that_is_none_is_refused_before_any_work(tmp_path: Path, task_id: str) -> None:
    with Place(tmp_path, local=True) as place:
        because = place.refused(write(NEW), task_id=task_id)
        assert "cannot be used: it must be 1 to 64 of the characters A-Z a-z 0-9 . _ -" in because
        assert because.isprintable()
        assert not place.state.exists()
        assert not place.server.served


@pytest.mark.parametrize("task_id", ["1", "a.b_c-D", "x" * 64, "0.1.0", "UPPER"])
def test_a_task_id_of_the_grammar_names_its_branch(tmp_path: Path, task_id: str) -> None:
    with Place(tmp_path, local=True) as place:
        assert place.landed(write(NEW), task_id=task_id).branch == f"impl/{task_id}"


def test_a_wrong_token_is_told_before_a_session(place: Place) -> None:
    assert "the forge does not accept GITHUB_TOKEN" in unfit(place, GITHUB_TOKEN="tok-wrong-token")


def test_a_repository_that_is_not_there_is_told_before_a_session(tmp_path: Path) -> None:
    with Place(tmp_path) as place:
        place.repo.path.rename(tmp_path / "gone.git")
        with pytest.raises(ActorError, match="there is no such repository"):
            place.run(write(NEW))
        assert not place.session_ran


@pytest.mark.parametrize("local", [True, False])
def test_what_to_check_about_a_missing_repository_names_the_settings_that_say_where_it_is(
    tmp_path: Path, *, local: bool
) -> None:
    with Place(tmp_path, local=local) as place:
        place.repo.path.rename(tmp_path / "gone.git")
        with pytest.raises(ActorError) as raised:
            place.run(write(NEW))
    assert raised.value.hint.startswith("check GIT_BASE_URL and source_repo")
    assert ("token" in raised.value.hint, "GITHUB_TOKEN" in raised.value.message) == (not local, not local)


def test_no_right_to_push_is_told_before_a_session(place: Place) -> None:
    assert "GITHUB_TOKEN has no right to write there" in unfit(place, GITHUB_TOKEN=READER)


def test_a_forge_that_cannot_be_reached_is_told_before_a_session(place: Place) -> None:
    assert "the forge cannot be reached" in unfit(place, GIT_BASE_URL="http://127.0.0.1:9")


def test_an_empty_repository_is_told_before_a_session(place: Place) -> None:
    place.repo.git("update-ref", "-d", "refs/heads/main")
    for tag in place.repo.tags():
        place.repo.git("tag", "-d", tag)
    assert "the repository has no commit on its default branch" in unfit(place)


def test_a_default_branch_that_does_not_exist_is_told_before_a_session(place: Place) -> None:
    place.repo.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert "the repository has no commit on its default branch" in unfit(place)


def test_a_tag_and_a_branch_that_are_named_like_a_component_confuse_nothing(place: Place) -> None:
    for name in ("backend", "stub", "HEAD", "tree"):
        place.repo.git("update-ref", f"refs/tags/{name}", place.repo.sha("main"))
    place.repo.add_commit("backend", {"docs/outside.md": "another\n"})
    assert place.landed(write(NEW)).changes == {NEW: "A"}


@pytest.mark.parametrize("name", ["impl", "impl/TASK-1/more"])
def test_a_branch_that_leaves_no_room_for_the_tasks_own_is_named(place: Place, name: str) -> None:
    place.repo.git("update-ref", f"refs/heads/{name}", place.repo.sha("main"))
    because = place.refused(write(NEW))
    assert f"cannot have the branch {BRANCH} beside {name}: " in because
    assert not place.session_ran


def test_a_missing_token_is_told_when_the_actor_starts(place: Place) -> None:
    with pytest.raises(ActorError, match="GITHUB_TOKEN is not set"):
        place.run(settings={"GITHUB_TOKEN": ""})


def test_a_state_directory_that_cannot_be_written_is_told(place: Place) -> None:
    place.state.write_text("a file")
    assert "the actor's state cannot be written" in unfit(place)


def test_the_mirror_follows_what_moves_and_goes_on_the_forge(place: Place) -> None:
    place.landed(write("backend/a"), task_id="one")
    moved = place.repo.add_commit("main", {"backend/price.py": "y = 2\n"})
    place.repo.git("update-ref", "-d", "refs/heads/impl/one")
    place.repo.git("update-ref", "refs/heads/impl/one/deeper", moved)
    place.repo.git("tag", "--force", "moving", moved)
    assert place.landed(write("backend/b"), task_id="two").parent == moved


@pytest.mark.parametrize("lock", ["packed-refs.lock", "refs/tags.lock", "refs/actor/head.lock", "config.lock"])
def test_a_lock_that_a_killed_git_left_in_the_mirror_holds_nothing_up(place: Place, lock: str) -> None:
    place.landed(write("backend/a"), task_id="one")
    [mirror] = (place.state / "mirrors").glob("*.git")
    (mirror / lock).write_text("")
    moved = place.repo.add_commit("main", {"backend/price.py": "y = 2\n"})
    for tag in place.repo.tags():
        place.repo.git("tag", "--delete", tag)
    assert place.landed(write("backend/b"), task_id="two").parent == moved


def test_a_mirror_that_was_not_finished_is_made_again(place: Place) -> None:
    place.landed(write("backend/a"), task_id="one")
    [mirror] = (place.state / "mirrors").glob("*.git")
    (mirror / "HEAD").unlink()
    assert place.landed(write("backend/b"), task_id="two").changes == {"backend/b": "A"}


def test_tasks_at_once_work_side_by_side(place: Place) -> None:
    """Each session waits for the other at a pipe: one after the other, they would never end."""
    there, back = place.base / "there", place.base / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    one = {"task": "one", "steps": [shell(f"echo 1 > {there}; cat {back} > backend/one")]}
    two = {"task": "two", "steps": [shell(f"cat {there} > backend/two; echo 2 > {back}")]}
    engine = place.engine(one, two, MAX_SESSIONS="2")
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(place.ask, engine, task_id=name) for name in ("one", "two")]
        assert [job.result(60)["accepted"] for job in jobs] == [True, True]
    assert place.repo.read("backend/one", "impl/one") == "2"
    assert place.repo.read("backend/two", "impl/two") == "1"


def test_of_many_tasks_no_more_are_worked_on_at_once_than_allowed(place: Place) -> None:
    engine = place.engine(write(NEW), MAX_SESSIONS="2")
    at_once, most = set[str](), list[int]()

    def watch(record: dict[str, object]) -> None:
        if record.get("step") in {"mirror", "push"} and record.get("phase") != "start":
            (at_once.add if record["step"] == "mirror" else at_once.discard)(str(record["task_id"]))
            most.append(len(at_once))

    place.on_record = watch
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: place.ask(engine, task_id=f"T{number}"), range(8)))
    assert all(reply["accepted"] for reply in replies)
    assert max(most) <= 2
    assert len(place.repo.branches()) == 9


@pytest.mark.parametrize(("mode", "what"), [("120000", "docs"), ("100644", "a file")])
def test_a_component_that_is_no_directory_in_the_repository_is_said_before_a_session_is_paid_for(
    place: Place, mode: str, what: str
) -> None:
    blob = place.repo.git("hash-object", "-w", "--stdin", stdin=what.encode())
    kept = [line for line in place.repo.git("ls-tree", "main").splitlines() if not line.endswith("\tstub")]
    tree = place.repo.git("mktree", stdin="\n".join([*kept, f"{mode} blob {blob}\tstub\n"]).encode())
    place.repo.git("update-ref", "refs/heads/main", place.repo.git("commit-tree", tree, "-p", "main", "-m", "replaced"))
    because = place.refused(write(NEW))
    assert "a link or a file in place of a component's directory: stub;" in because
    assert not place.session_ran
