"""The branch on the forge: nothing overwritten, nothing lost, and an answer that says how far it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from support.place import BRANCH, Place, shell, write
from support.repos import CAPABILITY

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def doing(act: Callable[[], object]) -> Callable[[Path], None]:
    """For `on_push`: what happens to the remote while the actor pushes."""

    def on_push(_: Path) -> None:
        act()

    return on_push


def test_the_commit_is_the_actors_own_and_says_what_it_answers(place: Place) -> None:
    landed = place.landed(write(NEW), {"say": "Done as asked."}, title="Add a\ndiscount " + "x" * 100)
    who = place.repo.git("show", "-s", "--format=%an <%ae> %cn <%ce>", landed.commit)
    me = f"{CAPABILITY}-implementation <acme-parts-cap-sup-007-wid-implementation@users.noreply.github.com>"
    assert who == f"{me} {me}"
    subject, body = landed.message.split("\n\n")[:2]
    assert subject.startswith("TASK-1: Add a discount xxx")
    assert len(subject) == 72
    assert body == "Done as asked."
    assert f"Base: {landed.parent}" in landed.message
    assert "Judged-By: boundary" in landed.message


def test_an_authors_configuration_of_the_host_signs_no_commit(
    place: Place, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".gitconfig").write_text("[user]\n\tname = Mallory\n\temail = m@m\n[commit]\n\tgpgSign = true\n")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    landed = place.landed(write(NEW))
    assert "Mallory" not in place.repo.git("show", "-s", "--format=%an%cn", landed.commit)


def test_a_branch_that_somebody_makes_meanwhile_is_not_overwritten(place: Place) -> None:
    theirs: list[str] = []
    place.server.on_push = doing(lambda: theirs.append(place.repo.add_commit(BRANCH, {"backend/theirs.py": "mine\n"})))
    reply = place.run(write(NEW))
    assert "was moved by somebody else while this task was worked on" in reply["because"]
    assert place.repo.branches()[BRANCH] == theirs[0]


def test_a_branch_that_is_taken_away_right_after_the_push_is_told_with_what_was_delivered(place: Place) -> None:
    hook = place.repo.path / "hooks/post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nread -r _ new _; echo $new > pushed; git update-ref -d refs/heads/{BRANCH}\n")
    hook.chmod(0o755)
    because = place.run(write(NEW))["because"]
    commit = (place.repo.path / "pushed").read_text().strip()
    assert f"the branch {BRANCH} was pushed at {commit[:12]}, and somebody else has moved or deleted it" in because


def test_a_default_branch_that_moves_meanwhile_changes_nothing(place: Place) -> None:
    before = place.repo.sha("main")
    place.server.on_push = doing(lambda: place.repo.add_commit("main", {"docs/outside.md": "new\n"}))
    assert place.landed(write(NEW)).parent == before


def test_a_branch_with_somebody_elses_commit_is_refused_before_a_session(place: Place) -> None:
    theirs = place.repo.add_commit(BRANCH, {"backend/theirs.py": "mine\n"})
    because = place.refused(write(NEW))
    assert f"the branch {BRANCH} exists at {theirs[:12]} and holds commits that this actor did not make" in because
    assert not place.session_ran


@pytest.mark.parametrize("remediation", ["", "it was wrong"])
def test_somebodys_commit_on_top_of_the_actors_own_is_not_overwritten(place: Place, remediation: str) -> None:
    place.landed(write(NEW))
    place.repo.add_commit(BRANCH, {"backend/theirs.py": "mine\n"})
    because = place.refused(write(NEW, "other\n"), title="another", remediation_context=remediation)
    assert "holds commits that this actor did not make" in because


def test_an_own_branch_is_replaced_when_the_task_changed(place: Place) -> None:
    first = place.landed(write(NEW))
    second = place.landed(write("stub/other.py"), title="Do it differently")
    assert second.commit != first.commit
    assert second.parent == first.parent
    assert second.changes == {"stub/other.py": "A"}


def test_an_own_branch_that_moves_meanwhile_is_not_overwritten(place: Place) -> None:
    place.landed(write(NEW))
    place.server.on_push = doing(lambda: place.repo.add_commit(BRANCH, {"backend/theirs.py": "mine\n"}))
    reply = place.run(write(NEW, "other\n"), title="another")
    assert "nothing was overwritten" in reply["because"]
    assert place.repo.read("backend/theirs.py", BRANCH) == "mine"


def test_a_branch_that_is_deleted_meanwhile_is_not_made_again(place: Place) -> None:
    place.landed(write(NEW))
    place.server.on_push = doing(lambda: place.repo.git("update-ref", "-d", f"refs/heads/{BRANCH}"))
    reply = place.run(write(NEW, "other\n"), title="another")
    assert reply["accepted"] is False
    assert BRANCH not in place.repo.branches()


def test_a_remediation_continues_from_the_earlier_attempt_and_says_so(place: Place) -> None:
    first = place.landed(write(NEW, "v = 1\n"))
    engine = place.engine(shell(f"cat {NEW}; git log --oneline | wc -l"), write(NEW, "v = 2\n"))
    reply = place.ask(engine, remediation_context="v must be 2")
    assert reply["accepted"] is True
    assert place.repo.sha(f"{BRANCH}^1") == first.commit
    assert "v = 1\n2\n" in place.told
    assert place.recorded("continues")[0]["commit"] == first.commit


def test_a_remediation_of_a_task_without_a_branch_starts_afresh(place: Place) -> None:
    assert place.landed(write(NEW), remediation_context="it was wrong").parent == place.repo.sha("main")
    assert not place.recorded("continues")


def test_two_remediations_in_a_row_stand_on_each_other(place: Place) -> None:
    heads = [place.landed(write(NEW, f"v = {n}\n"), remediation_context=f"try {n}").commit for n in (1, 2, 3)]
    log = place.repo.git("log", "--format=%H", f"main..{BRANCH}").splitlines()
    assert log == heads[::-1]


def test_a_branch_that_was_merged_still_answers_its_own_request(place: Place) -> None:
    landed = place.landed(write(NEW))
    place.repo.git("update-ref", "refs/heads/main", landed.commit)
    place.repo.add_commit("main", {"docs/outside.md": "later\n"})
    assert place.run(write(NEW))["accepted"] is True
    assert place.repo.branches()[BRANCH] == landed.commit


def test_a_branch_left_at_an_old_commit_of_the_default_branch_is_taken_over(place: Place) -> None:
    place.repo.git("update-ref", f"refs/heads/{BRANCH}", place.repo.sha("main"))
    place.repo.add_commit("main", {"docs/outside.md": "later\n"})
    assert place.landed(write(NEW)).parent == place.repo.sha("main")


def test_a_hook_of_the_forge_that_declines_is_passed_on_with_its_reason(place: Place) -> None:
    hook = place.repo.path / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Branches need a ticket.' >&2\nexit 1\n")
    hook.chmod(0o755)
    because = place.refused(write(NEW))
    assert f"the forge declined the branch {BRANCH}" in because
    assert "Branches need a ticket." in because
    assert "nothing was pushed" in because


def test_a_right_to_push_that_is_lost_meanwhile_is_told_and_pushes_nothing(place: Place) -> None:
    def revoke(record: dict[str, object]) -> None:
        if record.get("step") == "session-tool":
            place.server._writes = dict.fromkeys(place.server._writes, False)

    place.on_record = revoke
    with pytest.raises(ActorError, match="GITHUB_TOKEN has no right to write there") as raised:
        place.run(write(NEW))
    assert raised.value.code is Code.UNFIT
    assert BRANCH not in place.repo.branches()


def test_a_forge_that_goes_away_meanwhile_is_told(place: Place) -> None:
    def go_away(record: dict[str, object]) -> None:
        if record.get("step") == "session-tool":
            place.server.shutdown()
            place.server.socket.close()

    place.on_record = go_away
    with pytest.raises(ActorError, match="the branch cannot be pushed: the forge cannot be reached"):
        place.run(write(NEW))


@pytest.mark.parametrize(
    ("steps", "settings", "told"),
    [
        ([{"say": "a"}, {"say": "b"}, {"say": "c"}], {"MAX_TURNS": "2"}, "budget of 2 turns.*raise MAX_TURNS"),
        ([shell("sleep 600")], {"SESSION_TIMEOUT_S": "1"}, "budget of 1 seconds.*raise SESSION_TIMEOUT_S"),
        ([{"silence": True}], {"SILENCE_TIMEOUT_S": "1"}, "said nothing for 1 seconds"),
        ([{"exit": 7}], {}, "broke: .*exit code 7"),
    ],
)
def test_a_session_that_is_cut_off_pushes_nothing_of_its_work(
    place: Place, steps: list[dict[str, object]], settings: dict[str, str], told: str
) -> None:
    before = place.repo.branches()
    with pytest.raises(ActorError, match=told) as raised:
        place.run(write(NEW), *steps, settings=settings)
    assert "implement-task: " in str(raised.value)
    assert "nothing of it was pushed" in str(raised.value)
    assert raised.value.code is Code.STOPPED
    assert place.repo.branches() == before
    assert not list((place.state / "runs").iterdir())
