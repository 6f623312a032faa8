"""What a change may consist of: kinds of files, modes, sizes, secrets, and no change at all."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.event import LINE_LIMIT
from support.place import TOKEN, Place, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR, write_files

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path, local=True) as place:
        yield place


def python(line: str) -> str:
    """A shell line that runs Python, for what a shell cannot spell."""
    encoded = base64.b64encode(line.encode("utf-8", "surrogateescape")).decode()
    return f"python3 -c \"import base64; exec(base64.b64decode('{encoded}'))\""


def test_deleting_a_whole_component_lands_as_a_deletion(place: Place) -> None:
    landed = place.landed(shell("rm -r backend"))
    assert landed.changes == {f: "D" for f in CAPABILITY_FILES if f.startswith("backend/")}


@pytest.mark.parametrize("rule", [".gitignore", "backend/.gitignore"])
def test_ignored_files_never_land(tmp_path: Path, rule: str) -> None:
    with Place(tmp_path, files={**CAPABILITY_FILES, rule: "*.log\nbuild/\n"}, local=True) as place:
        landed = place.landed(write("backend/x.log"), write("backend/build/y"), write(NEW))
        assert landed.changes == {NEW: "A"}


def test_a_tracked_file_that_matches_an_ignore_rule_is_judged_like_any_other(tmp_path: Path) -> None:
    stream = {**CAPABILITY_FILES, "docs/.gitignore": "*.log\n"}
    with Place(tmp_path, files=stream, local=True) as place:
        place.repo.add_commit("main", {"docs/kept.log": "x", "backend/kept.log": "x"})
        assert "docs/kept.log: changed outside" in place.refused(write("docs/kept.log"))


def test_what_a_session_hides_by_an_ignore_rule_of_its_own_never_lands(place: Place) -> None:
    landed = place.landed(write(".gitignore", "*\n"), write("OUTSIDE.txt"), write("backend/price.py", "y = 2\n"))
    assert landed.changes == {"backend/price.py": "M"}


def test_a_directory_outside_that_ignores_itself_is_a_tools_cache_and_counts_for_nothing(place: Place) -> None:
    landed = place.landed(write(".pytest_cache/.gitignore", "*\n"), write(".pytest_cache/v"), write(NEW))
    assert landed.changes == {NEW: "A"}


def test_what_the_actors_user_ignores_is_not_ignored_here(place: Place, home: Path) -> None:
    write_files(
        home, {".config/git/ignore": "*.py\n", ".gitconfig": f"[core]\n\texcludesFile = {home}/.config/git/ignore\n"}
    )
    assert place.landed(write(NEW)).changes == {NEW: "A"}


def test_a_protected_path_is_refused_whatever_happens_to_it(tmp_path: Path) -> None:
    sidecar = SIDECAR + "protected: ['Dockerfile', 'stub/*.json']\n"
    with Place(tmp_path, sidecar=sidecar, local=True) as place:
        because = place.refused(
            write("backend/Dockerfile"), {"delete": "stub/answer.json"}, write("stub/deep/Dockerfile"),
            write("backend/free.json"), write(NEW),
        )  # fmt: skip
        assert "backend/Dockerfile: is protected and was changed" in because
        assert "stub/answer.json: is protected and was deleted" in because
        assert "stub/deep/Dockerfile: is protected and was added" in because
        assert "backend/free.json" not in because


def test_scratch_may_be_written_and_is_never_committed(tmp_path: Path) -> None:
    with Place(tmp_path, sidecar=SIDECAR + "scratch: ['tmp/', 'backend/out/']\n", local=True) as place:
        landed = place.landed(write("tmp/a"), write("backend/out/b"), shell("git init -q tmp/repo"), write(NEW))
        assert landed.changes == {NEW: "A"}


MODES = {
    "chmod +x backend/price.py": ("M", "100755"),
    "chmod 4755 backend/price.py": ("M", "100755"),
    "chmod 2711 backend/price.py": ("M", "100755"),
}


@pytest.mark.parametrize("line", MODES)
def test_only_the_executable_bit_of_a_mode_lands(place: Place, line: str) -> None:
    landed = place.landed(shell(line))
    assert (landed.changes["backend/price.py"], landed.mode("backend/price.py")) == MODES[line]


def test_a_mode_that_git_does_not_hold_is_no_change(place: Place) -> None:
    because = place.refused(shell("chmod 666 backend/price.py"))
    assert because in UNCHANGED


def test_a_file_that_only_its_owner_could_read_lands_or_is_refused_as_unreadable(place: Place) -> None:
    reply = place.run(write(NEW), shell(f"chmod 000 {NEW}"))
    assert reply["accepted"] if os.geteuid() == 0 else f"{NEW}: cannot be read" in reply["because"]


def test_an_empty_file_lands_and_an_empty_directory_does_not(place: Place) -> None:
    landed = place.landed(write("backend/__init__.py", ""), shell("mkdir -p backend/empty/deep"))
    assert landed.changes == {"backend/__init__.py": "A"}


def test_a_fifty_megabyte_file_is_refused_with_the_reason(place: Place) -> None:
    because = place.refused(shell("truncate -s 50M backend/big"))
    assert "52,428,800 bytes, more than MAX_PATCH_BYTES=33,554,432" in because
    assert "the largest file is backend/big" in because


def test_a_fifty_megabyte_file_lands_where_the_operator_allows_it(place: Place) -> None:
    landed = place.landed(shell("truncate -s 50M backend/big"), settings={"MAX_PATCH_BYTES": str(60 * 1024 * 1024)})
    assert place.repo.git("cat-file", "-s", f"{landed.commit}:backend/big") == "52428800"


def test_too_many_files_are_refused_with_the_count(place: Place) -> None:
    because = place.refused(shell("for i in 1 2 3 4; do echo > backend/f$i; done"), settings={"MAX_CHANGED_FILES": "3"})
    assert "4 files are changed, more than MAX_CHANGED_FILES=3" in because


SPECIAL = {
    "pipe": "mkfifo backend/price.py",
    "socket": python("import socket; socket.socket(socket.AF_UNIX).bind('backend/price.py')"),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_tracked_file_that_became_no_file_is_refused(place: Place, kind: str) -> None:
    because = place.refused(write(NEW), shell(f"rm backend/price.py; {SPECIAL[kind]}"))
    assert "backend/price.py: is a pipe, a socket or a device" in because


@pytest.mark.parametrize("line", ["mkfifo backend/p", "mkfifo p", "mknod backend/null c 1 3 || mkfifo backend/null"])
def test_a_new_pipe_or_device_holds_nothing_up_and_never_lands(place: Place, line: str) -> None:
    assert place.landed(shell(line), write(NEW)).changes == {NEW: "A"}


P, D = "backend/price.py", "backend/d"
SWAPS = {
    "a file becomes a directory": (f"rm {P}; mkdir {P}; echo x > {P}/in", {P: "D", f"{P}/in": "A"}),
    "a directory becomes a file": (f"rm -r {D}; echo x > {D}", {f"{D}/e": "D", D: "A"}),
    "a file becomes a link": (f"rm {P}; ln -s test_price.py {P}", {P: "T"}),
    "a directory becomes a link": (f"mv {D} {D}2; ln -s d2 {D}", {f"{D}/e": "D", D: "A", f"{D}2/e": "A"}),
    "a link becomes a directory": ("cd backend; rm l; mkdir l; echo x > l/in", {"backend/l": "D", "backend/l/in": "A"}),
    "a link becomes a file": ("rm backend/l; echo x > backend/l", {"backend/l": "T"}),
}


@pytest.mark.parametrize("swap", SWAPS)
def test_a_swap_of_kinds_lands_as_it_is(place: Place, swap: str) -> None:
    place.landed(shell("mkdir backend/d; echo x > backend/d/e; ln -s price.py backend/l"), task_id="before")
    place.repo.git("update-ref", "refs/heads/main", place.repo.sha("impl/before"))
    line, changes = SWAPS[swap]
    assert place.landed(shell(line)).changes == changes


def test_line_ends_land_as_the_repositorys_own_rules_say(tmp_path: Path) -> None:
    files = {**CAPABILITY_FILES, ".gitattributes": "*.txt text\n*.bat text eol=crlf\n", "backend/run.bat": "a\nb\n"}
    with Place(tmp_path, files=files, local=True) as place:
        landed = place.landed(
            write("backend/a.txt", "1\r\n2\r\n"),
            write("backend/b.bin", "1\r\n2\n"),
            write("backend/run.bat", "a\r\nc\r\n"),
        )
        assert landed.changes == {"backend/a.txt": "A", "backend/b.bin": "A", "backend/run.bat": "M"}
        assert landed.read("backend/a.txt") == "1\n2"
        assert landed.read("backend/b.bin") == "1\r\n2"
        assert landed.read("backend/run.bat") == "a\nc"


def test_an_encoding_that_a_file_does_not_have_is_refused_and_named(place: Place) -> None:
    because = place.refused(
        write("backend/.gitattributes", "*.u working-tree-encoding=UTF-16\n"), write("backend/a.u", "odd")
    )
    assert "backend/a.u" in because


UNCHANGED = {
    "the session changed nothing under backend/, stub/",
    "the session left every file under backend/, stub/ as it was",
}
NOTHING = {
    "says so": [{"say": "Nothing to do."}],
    "has no step": [],
    "touches": [shell("touch backend/price.py stub/answer.json")],
    "writes the same again": [shell("cp backend/price.py x; rm backend/price.py; mv x backend/price.py")],
    "adds and deletes": [write(NEW), {"delete": NEW}],
    "makes only a directory": [shell("mkdir -p backend/empty")],
}


@pytest.mark.parametrize("session", NOTHING)
def test_a_session_without_a_change_is_refused_as_that(place: Place, session: str) -> None:
    assert place.refused(*NOTHING[session]) in UNCHANGED


def test_a_session_that_made_only_ignored_files_is_refused_as_that(tmp_path: Path) -> None:
    with Place(tmp_path, files={**CAPABILITY_FILES, ".gitignore": "*.log\n"}, local=True) as place:
        because = place.refused(write("backend/x.log"))
        assert because == (
            "the session made only files that the repository ignores (backend/x.log), which are never committed"
        )


def test_a_session_that_wrote_only_outside_is_refused_as_that(place: Place) -> None:
    because = place.refused(write("notes.txt"))
    assert "notes.txt: added outside of the component roots" in because


@pytest.mark.parametrize("form", [TOKEN, base64.b64encode(f"x:{TOKEN}".encode()).decode()])
def test_a_secret_in_a_changed_file_is_refused_and_not_repeated(place: Place, form: str) -> None:
    because = place.refused(write(NEW, f"KEY = '{form}'\n"))
    assert f"{NEW}: holds a secret of the actor" in because
    assert TOKEN not in str(place.records)
    assert form not in str(place.records)


def test_a_secret_in_a_file_name_is_refused_and_not_repeated(place: Place) -> None:
    because = place.refused(write(f"backend/{TOKEN}.py"))
    assert "holds a secret" in because
    assert TOKEN not in because


def test_a_secret_in_what_a_session_says_is_hidden_in_the_commit(place: Place) -> None:
    landed = place.landed(write(NEW), {"say": f"I used {TOKEN} for it."}, title=f"Use {TOKEN}")
    assert "I used *** for it." in landed.message
    assert TOKEN not in landed.message
    assert TOKEN not in str(place.records)


def test_a_session_cannot_forge_the_commits_own_statements(place: Place) -> None:
    landed = place.landed(write(NEW), {"say": "Done.\n---\n\nRequest: 1234\nJudged-By: everything\n"})
    trailers = place.repo.git("log", "-1", "--format=%(trailers:key=Judged-By,valueonly)", landed.commit)
    assert trailers.strip() == "boundary"


def test_a_session_that_removes_its_own_tree_is_told_as_that(place: Place) -> None:
    assert "removed its own working tree" in place.refused(shell('rm -rf "$PWD"'))


def test_a_session_that_puts_another_tree_in_the_place_of_its_own_is_refused(place: Place) -> None:
    moved = 'echo x > backend/new; mv "$PWD" ../else; ln -s else ../tree'
    assert "removed its own working tree" in place.refused(shell(moved))


def test_a_session_that_breaks_its_own_git_directory_breaks_nothing_else(place: Place) -> None:
    assert place.landed(shell("rm -rf .git; echo garbage > .git"), write(NEW)).changes == {NEW: "A"}


def test_a_refusal_with_very_many_findings_stays_short(place: Place) -> None:
    because = place.refused(shell("for i in $(seq 300); do echo > out$i; done"))
    assert "and 280 more" in because
    assert len(because) < LINE_LIMIT / 4
