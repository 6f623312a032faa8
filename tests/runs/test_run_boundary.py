"""What of a session's work may land, each case by a whole run against a real repository."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.event import LINE_LIMIT
from support.place import BRANCH, TOKEN, Place, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR, Files, write_files

NEW = "backend/discount.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path, local=True) as place:
        yield place


def python(line: str) -> str:
    """A shell line that runs Python, for what a shell cannot spell."""
    encoded = base64.b64encode(line.encode("utf-8", "surrogateescape")).decode()
    return f"python3 -c \"import base64; exec(base64.b64decode('{encoded}'))\""


def test_what_a_session_wrote_inside_lands_on_the_recorded_base(place: Place) -> None:
    landed = place.landed(write(NEW, "DISCOUNT = 2\n"), {"say": "The discount is there."})
    assert landed.changes == {NEW: "A"}
    assert landed.read(NEW) == "DISCOUNT = 2"
    assert landed.parent == place.repo.sha("main")
    assert "The discount is there." in landed.message


@pytest.mark.parametrize("path", ["OUTSIDE.txt", "CLAUDE.md", ".foundry/x", "docs/outside.md", "backend2/x"])
def test_a_write_outside_the_roots_refuses_everything_and_is_named(place: Place, path: str) -> None:
    because = place.refused(write(NEW), write(path, "stray\n"))
    assert f"{path}: " in because
    assert "outside of the component roots (backend/, stub/)" in because


@pytest.mark.parametrize("path", ["OUTSIDE.txt", "CLAUDE.md", ".foundry/x"])
def test_a_commit_that_a_session_makes_carries_nothing_along(place: Place, path: str) -> None:
    commit = f"mkdir -p .foundry; echo stray > {path}; git add -A -f; git commit -qm mine; git push -q origin HEAD"
    assert f"{path}: " in place.refused(write(NEW), shell(commit))


def test_a_commit_of_outside_files_that_are_gone_again_leaves_no_trace(place: Place) -> None:
    commit = "echo x > OUTSIDE.txt; git add OUTSIDE.txt; git commit -qm mine; rm OUTSIDE.txt"
    landed = place.landed(shell(commit), write(NEW))
    assert landed.changes == {NEW: "A"}
    assert landed.parent == place.repo.sha("main")


def test_work_that_a_session_committed_by_itself_lands_as_one_commit_of_the_actor(place: Place) -> None:
    landed = place.landed(write(NEW), shell("git add -A backend; git commit -qm mine; git checkout -q HEAD~1"), write(NEW))
    assert landed.changes == {NEW: "A"}
    assert "mine" not in place.repo.git("log", "--format=%s", BRANCH)


def test_a_move_from_outside_to_inside_counts_on_both_sides(place: Place) -> None:
    because = place.refused(shell("git mv docs/outside.md backend/"))
    assert "docs/outside.md: deleted outside" in because


def test_a_move_inside_is_a_deletion_and_an_addition(place: Place) -> None:
    landed = place.landed(shell("git mv backend/price.py stub/price.py"))
    assert landed.changes == {"backend/price.py": "D", "stub/price.py": "A"}


ODD_NAMES = [
    "café.py", "a b.py", 'a"b', "a\nb", "a\tb", "a\\b", "--all", ":(top)x", "*", "?", "[a]", "-", "$HOME", "日本.py",
    " leading", "trailing ", "e\u0301.py", "\udcff\udcfe.bin", "x" * 255, "#", "!x", "a\x7fb", "\u202eevil.py",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_file_name_lands_as_it_is(place: Place, name: str) -> None:
    path = f"backend/{name}"
    landed = place.landed(shell(python(f"import os; open(os.fsencode({path!r}), 'w').write('odd')")))
    assert landed.changes == {path: "A"}
    assert landed.read(path) == "odd"


def test_every_odd_name_at_once_can_be_changed_moved_and_deleted(tmp_path: Path) -> None:
    names = [name for name in ODD_NAMES if len(name) < 200]
    files: Files = {**CAPABILITY_FILES, **{f"backend/odd/{name}": "before" for name in names}}
    with Place(tmp_path, files=files, local=True) as place:
        changed = place.landed(shell("for f in backend/odd/* 'backend/odd/ leading'; do echo after > \"$f\"; done"))
        assert changed.changes == {f"backend/odd/{name}": "M" for name in names}
        moved = place.landed(shell("mv backend/odd stub/"), task_id="TASK-2")
        assert moved.changes == {
            **{f"backend/odd/{name}": "D" for name in names}, **{f"stub/odd/{name}": "A" for name in names},
        }  # fmt: skip


def test_an_odd_name_outside_is_named_in_the_refusal_so_that_it_can_be_read(place: Place) -> None:
    because = place.refused(shell(python("open(b'out\\n\\xff', 'w').write('x')")))
    assert "out\\n\\udcff: added outside" in because


@pytest.mark.parametrize("name", [".GIT/x", ".Git/config", "git~1/x", ".gIt"])
def test_a_name_that_git_itself_refuses_is_refused_with_that_reason(place: Place, name: str) -> None:
    because = place.refused(write(NEW), write(f"backend/{name}"))
    assert f"backend/{name}: has a name that git refuses" in because


LEADING_OUT = {
    "absolute": "ln -s /etc/passwd backend/link",
    "upwards": "ln -s ../.. backend/link",
    "to the repository's root": "ln -s .. backend/link",
    "to a sibling component": "ln -s ../stub/answer.json backend/link",
    "from a folder": "mkdir backend/deep; ln -s ../../docs backend/deep/link",
    "with dots and slashes": "ln -s .//.././docs/outside.md backend/link",
    "to the git directory": "ln -s ../.git backend/link",
    "to a name that starts like the component": "ln -s ../backend2 backend/link",
    "in the place of a file": "ln -sf ../docs/outside.md backend/price.py",
}


@pytest.mark.parametrize("how", LEADING_OUT)
def test_a_link_that_leads_out_of_its_component_is_refused(place: Place, how: str) -> None:
    because = place.refused(write(NEW), shell(LEADING_OUT[how]))
    assert "is a link that leads out of its component" in because


STAYING_INSIDE = {
    "to a file": "ln -s price.py backend/link",
    "to a folder above": "mkdir backend/deep; ln -s ../price.py backend/deep/link",
    "to nothing": "ln -s not-there backend/link",
    "to the component's own root": "ln -s . backend/link",
}


@pytest.mark.parametrize("how", STAYING_INSIDE)
def test_a_link_inside_its_own_component_lands_as_a_link(place: Place, how: str) -> None:
    landed = place.landed(shell(STAYING_INSIDE[how]))
    [link] = landed.changes
    assert landed.mode(link) == "120000"


CHAINS = {
    "two steps up by way of a link to a folder": "mkdir -p backend/a/b; ln -s a/b backend/q; ln -s q/../../../x backend/l",
    "a link to a link that leads out": "mkdir backend/d; ln -s d backend/in; ln -s in/../../docs backend/out",
    "a link below a link": "mkdir -p backend/a/b/c; ln -s a/b/c backend/in; ln -s in/../../../../docs backend/out",
}


@pytest.mark.parametrize("how", CHAINS)
def test_a_chain_of_links_does_not_lead_out(place: Place, how: str) -> None:
    assert "is a link whose target goes up after it went down" in place.refused(shell(CHAINS[how]))


def test_a_chain_that_leads_out_only_by_way_of_an_older_link_is_refused(tmp_path: Path) -> None:
    """`up` is a link to a deep folder, so `up/../..` is not where its spelling says."""
    with Place(tmp_path, local=True) as place:
        place.landed(shell("mkdir -p backend/x; echo 1 > backend/x/y; ln -s . backend/up"))
        place.repo.git("update-ref", "refs/heads/main", place.repo.sha(BRANCH))
        because = place.refused(shell("ln -s up/../docs backend/out"), task_id="TASK-2")
        assert "backend/out: is a link whose target goes up after it went down" in because


ROOT_REPLACED = {
    "by a link": "mv backend ../elsewhere; ln -s ../elsewhere backend",
    "by a link to a sibling": "rm -r backend; ln -s stub backend",
    "by a file": "rm -r backend; echo x > backend",
}


@pytest.mark.parametrize("how", ROOT_REPLACED)
def test_a_component_root_that_was_replaced_is_refused(place: Place, how: str) -> None:
    because = place.refused(write("stub/x"), shell(ROOT_REPLACED[how]))
    assert "backend: is a link or a file in place of a directory" in because


NESTED = SIDECAR.replace("path: backend/", "path: services/backend/").replace("backend/\n  - name: stub", "services/backend/\n  - name: stub")
NESTED_FILES = {f"services/{name}" if name.startswith("backend") else name: text for name, text in CAPABILITY_FILES.items()}


@pytest.mark.parametrize("how", ["mv services ../else; ln -s ../else services", "rm -r services; echo x > services"])
def test_a_parent_of_a_component_root_that_was_replaced_is_refused(tmp_path: Path, how: str) -> None:
    with Place(tmp_path, sidecar=NESTED, files=NESTED_FILES, local=True) as place:
        because = place.refused(write("stub/x"), shell(how))
        assert "services: is a link or a file in place of a directory" in because


def test_of_two_nested_components_the_longest_prefix_owns_a_path(tmp_path: Path) -> None:
    sidecar = SIDECAR.replace("path: stub/", "path: backend/stub/").replace("dockerfile: stub/", "dockerfile: backend/stub/")
    with Place(tmp_path, sidecar=sidecar, local=True) as place:
        place.landed(write("backend/stub/a"))
        place.landed(write("backend/b"), task_id="TASK-2")
        assert [r["components"] for r in place.recorded("components-touched")] == [["stub"], ["backend"]]
        because = place.refused(shell("mkdir -p backend/stub; ln -s ../price.py backend/stub/l"), task_id="TASK-3")
        assert "backend/stub/l: is a link that leads out" in because


IDENTITY = "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a"
GITLINKS = {
    "a nested repository with a commit": "git init -q backend/n; cd backend/n; echo x > f; git add f; git commit -qm n",
    "a nested repository without a commit": "git init -q backend/n; echo x > backend/n/f",
    "a nested repository deep inside": "mkdir -p backend/a/b; git init -q backend/a/b/n; echo x > backend/a/b/n/f",
    "a nested repository by a git file": "git init -q ../else; git -C ../else commit -q --allow-empty -m n;"
    " mkdir backend/n; echo 'gitdir: ../../../else/.git' > backend/n/.git; echo x > backend/n/f",
    "an empty repository in the place of a file": "rm backend/price.py; git init -q backend/price.py",
    "a repository in the place of a file": "rm backend/price.py; git init -q backend/price.py; cd backend/price.py;"
    " git commit -q --allow-empty -m n",
}  # fmt: skip


@pytest.mark.parametrize("how", GITLINKS)
def test_a_repository_inside_a_component_is_refused(place: Place, how: str) -> None:
    because = place.refused(write(NEW), shell(f"export {IDENTITY}; {GITLINKS[how]}"))
    assert "repository" in because


def test_a_gitlink_in_the_sessions_own_index_is_never_read(place: Place) -> None:
    link = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),backend/link; git commit -qm link"
    assert place.landed(shell(link), write(NEW)).changes == {NEW: "A"}


def with_submodule(tmp_path: Path) -> Place:
    """A place whose repository has a submodule at backend/sub."""
    place = Place(tmp_path, local=True)
    stream = f"commit refs/heads/main\ncommitter A <a@b.c> 1767323045 +0000\ndata 1\nx\nfrom {place.repo.sha()}\n"
    stream += f"M 160000 {'1' * 40} backend/sub\n"
    place.repo.git("fast-import", "--quiet", "--force", stdin=stream.encode())
    return place


def test_a_submodule_that_nobody_touched_stays_as_it_is(tmp_path: Path) -> None:
    with with_submodule(tmp_path) as place:
        landed = place.landed(write(NEW))
        assert landed.changes == {NEW: "A"}
        assert landed.mode("backend/sub") == "160000"


@pytest.mark.parametrize("how", ["git init -q backend/sub", "echo x > backend/sub/f", "rmdir backend/sub; echo x > backend/sub"])
def test_a_submodule_that_a_session_filled_is_refused(tmp_path: Path, how: str) -> None:
    with with_submodule(tmp_path) as place:
        assert "backend/sub: is a submodule, which a session may not fill" in place.refused(write(NEW), shell(how))


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
    write_files(home, {".config/git/ignore": "*.py\n", ".gitconfig": f"[core]\n\texcludesFile = {home}/.config/git/ignore\n"})
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


SWAPS = {
    "a file becomes a directory": ("rm backend/price.py; mkdir backend/price.py; echo x > backend/price.py/in", {"backend/price.py": "D", "backend/price.py/in": "A"}),
    "a directory becomes a file": ("rm -r backend/d; echo x > backend/d", {"backend/d/e": "D", "backend/d": "A"}),
    "a file becomes a link": ("rm backend/price.py; ln -s test_price.py backend/price.py", {"backend/price.py": "T"}),
    "a directory becomes a link": ("mv backend/d backend/f; ln -s f backend/d", {"backend/d/e": "D", "backend/d": "A", "backend/f/e": "A"}),
    "a link becomes a directory": ("rm backend/l; mkdir backend/l; echo x > backend/l/in", {"backend/l": "D", "backend/l/in": "A"}),
    "a link becomes a file": ("rm backend/l; echo x > backend/l", {"backend/l": "T"}),
}  # fmt: skip


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
            write("backend/a.txt", "1\r\n2\r\n"), write("backend/b.bin", "1\r\n2\n"), write("backend/run.bat", "a\r\nc\r\n")
        )
        assert landed.changes == {"backend/a.txt": "A", "backend/b.bin": "A", "backend/run.bat": "M"}
        assert landed.read("backend/a.txt") == "1\n2"
        assert landed.read("backend/b.bin") == "1\r\n2"
        assert landed.read("backend/run.bat") == "a\nc"


def test_an_encoding_that_a_file_does_not_have_is_refused_and_named(place: Place) -> None:
    because = place.refused(write("backend/.gitattributes", "*.u working-tree-encoding=UTF-16\n"), write("backend/a.u", "odd"))
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
