"""What sessions did in an attack on the path from their tree to the forge, each held by a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.error import ActorError
from support.place import BRANCH, TOKEN, Place, shell, write
from support.repos import CAPABILITY_FILES

NEW = "backend/discount.py"
LINE_ENDS = {**CAPABILITY_FILES, ".gitattributes": "*.txt text eol=crlf\n"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path, local=True) as place:
        yield place


def test_no_git_directory_of_the_actor_lies_beside_the_tree_while_a_session_runs(place: Place) -> None:
    place.run(shell("echo .. HOLDS $(ls ..) END"), write(NEW))
    assert ".. HOLDS home lock tmp tree END" in place.told


REROUTED = """
import sys
from pathlib import Path
from typing import Any
for config in Path("..").glob("*/config"):
    config.write_text(config.read_text() + '[url "file://{evil}"]\\n\\tinsteadOf = {forge}\\n')
Path("../trusted.git").mkdir(exist_ok=True)
"""


def test_a_push_goes_to_the_forge_whatever_a_session_writes_beside_its_tree(place: Place, tmp_path: Path) -> None:
    evil = place.repo.bare(tmp_path / "evil.git")
    script = REROUTED.format(evil=evil.path, forge=f"file://{place.repo.path}")
    (tmp_path / "reroute.py").write_text(script)
    landed = place.landed(shell(f"python3 {tmp_path}/reroute.py"), write(NEW))
    assert place.repo.branches()[BRANCH] == landed.commit
    assert list(evil.branches()) == ["main"]


SMUGGLED = """
export GIT_DIR=$PWD/.git
blob=$(echo smuggled | git hash-object -w --stdin)
for index in ../*/index ../*/index.base; do
    [ -e "$index" ] || continue
    GIT_INDEX_FILE=$index git update-index --add --cacheinfo 100644,$blob,docs/smuggled.md
done
for place in ../*/objects; do [ -d "$place" ] && cp -r .git/objects/?? "$place"; done
true
"""


def test_an_index_that_a_session_fills_puts_nothing_outside_of_the_roots_into_a_commit(place: Place) -> None:
    assert place.landed(shell(SMUGGLED), write(NEW)).changes == {NEW: "A"}


def test_what_a_session_puts_in_the_way_beside_its_tree_stops_nothing(place: Place) -> None:
    names = ("trusted.git", "checkout.git", "export", "glance.git", "index")
    assert place.landed(shell(f"cd ..; mkdir -p {' '.join(names)}; chmod 0 ."), write(NEW)).changes == {NEW: "A"}


@pytest.mark.parametrize("where", ["docs/old.txt", "backend/old.txt"])
@pytest.mark.parametrize("content", ["a\r\nb\r\n", "a\r\nb\n"])
def test_line_ends_that_were_never_brought_in_line_are_no_change(tmp_path: Path, where: str, content: str) -> None:
    """The file is committed as no git with these attributes would commit it, and stays as it is."""
    with Place(tmp_path, files=LINE_ENDS, local=True) as place:
        before = place.repo.add_commit("main", {where: content})
        landed = place.landed(shell(f"touch -d '1 hour ago' {where}"), write(NEW))
        assert landed.changes == {NEW: "A"}
        assert landed.parent == before


def test_a_real_change_of_such_a_file_is_seen(tmp_path: Path) -> None:
    with Place(tmp_path, files=LINE_ENDS, local=True) as place:
        place.repo.add_commit("main", {"backend/old.txt": "a\r\nb\r\n", "docs/old.txt": "a\r\nb\r\n"})
        assert "docs/old.txt: changed outside" in place.refused(shell("printf 'a\\r\\nc\\r\\n' > docs/old.txt"))
        landed = place.landed(shell("printf 'a\\r\\nc\\r\\n' > backend/old.txt"), task_id="T2")
        assert landed.changes == {"backend/old.txt": "M"}


def test_attributes_that_a_session_adds_change_no_file_that_it_left_alone(place: Place) -> None:
    place.repo.add_commit("main", {"backend/old.txt": "a\r\nb\r\n"})
    landed = place.landed(write("backend/.gitattributes", "*.txt text eol=crlf\n"), shell("touch backend/old.txt"))
    assert landed.changes == {"backend/.gitattributes": "A"}


def test_an_accepted_answer_is_given_again_only_while_its_branch_is_there(place: Place) -> None:
    engine = place.engine(write(NEW))
    first = place.ask(engine)
    assert place.ask(engine) == first
    assert len(place.recorded("session", "start")) == 1
    place.repo.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    assert place.ask(engine)["accepted"] is True
    assert BRANCH in place.repo.branches()
    assert len(place.recorded("session", "start")) == 2


def test_an_accepted_answer_is_forgotten_when_somebody_else_moves_the_branch(place: Place) -> None:
    engine = place.engine(write(NEW))
    place.ask(engine)
    place.repo.add_commit(BRANCH, {"backend/theirs.py": "mine\n"})
    assert "holds commits that this actor did not make" in place.ask(engine)["because"]


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
@pytest.mark.parametrize("folder", [".", "backend/deep", "docs"])
def test_a_pipe_where_git_reads_rules_is_named_and_holds_nothing_up(place: Place, name: str, folder: str) -> None:
    path = os.path.normpath(f"{folder}/{name}")
    because = place.refused(
        shell(f"mkdir -p backend/deep; mkfifo {path}; echo 1 > backend/deep/x; touch -d '1 hour ago' docs/*"),
        settings={"CLONE_TIMEOUT_S": "60"},
    )  # fmt: skip
    assert path in because


DEEP = """
import os
os.chdir("{root}")
for _ in range(25):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("lost", "w").close()
"""


@pytest.mark.parametrize("root", ["backend", "docs"])
def test_files_too_deep_for_git_to_see_are_a_refusal_and_not_lost(place: Place, tmp_path: Path, root: str) -> None:
    (tmp_path / "deep.py").write_text(DEEP.format(root=root))
    because = place.refused(shell(f"python3 {tmp_path}/deep.py"), write(NEW))
    assert "/: cannot be read: its name is too long" in because


def test_a_file_whose_own_name_is_too_long_to_reach_is_a_refusal(place: Place, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(DEEP.format(root="backend").replace("25", "20").replace('"lost"', '"f" * 240'))
    assert "cannot be read: File name too long" in place.refused(shell(f"python3 {tmp_path}/deep.py"), write(NEW))


def test_a_tree_that_became_a_link_is_told_in_words_about_the_session(place: Place) -> None:
    because = place.refused(shell("cd ..; mv tree other; ln -s other tree"))
    assert "the session removed its own working tree" in because
    assert str(place.state) not in because


def test_a_link_through_a_link_of_the_base_may_not_leave_the_component(place: Place) -> None:
    stream = f"commit refs/heads/main\ncommitter A <a@b.c> 1767323045 +0000\ndata 1\nx\nfrom {place.repo.sha()}\n"
    stream += "M 120000 inline backend/up\ndata 5\n../..\nM 120000 inline backend/here\ndata 1\n.\n"
    place.repo.git("fast-import", "--quiet", "--force", stdin=stream.encode())
    assert "backend/l: is a link that leads out" in place.refused(shell("ln -s up/etc/passwd backend/l"))
    assert place.landed(shell("ln -s here/price.py backend/l")).changes == {"backend/l": "A"}


def test_a_secret_in_a_title_is_hidden_before_the_subject_is_cut(place: Place) -> None:
    landed = place.landed(write(NEW), title="x" * 55 + TOKEN)
    assert TOKEN[:6] not in landed.message


def test_a_task_id_that_is_a_secret_names_no_branch(place: Place) -> None:
    because = place.refused(write(NEW), task_id=TOKEN)
    assert "task_id holds a secret" in because
    assert TOKEN not in because
    assert not place.session_ran


@pytest.mark.parametrize("field", ["definition_of_done", "acceptance_surface"])
def test_no_more_entries_than_a_session_can_work_through(place: Place, field: str) -> None:
    entries: Any = [{"id": f"E{number}"} if field == "acceptance_surface" else "done" for number in range(1_001)]
    with pytest.raises(ActorError, match=f"{field} holds 1,001 .*, more than the 1,000"):
        place.run(write(NEW), **{field: entries})


def test_a_huge_file_in_place_of_a_grounding_file_is_not_read(place: Place) -> None:
    because = place.refused(shell("truncate -s 4T CLAUDE.md"))
    assert "CLAUDE.md: added outside" in because
