"""What of a session's work may land, each case by a whole run against a real repository."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.place import BRANCH, Place, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR, Files

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
    landed = place.landed(
        write(NEW), shell("git add -A backend; git commit -qm mine; git checkout -q HEAD~1"), write(NEW)
    )
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
    "up by way of a link to a folder": "mkdir -p backend/a/b; ln -s a/b backend/q; ln -s q/../../../x backend/l",
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


NESTED = SIDECAR.replace("path: backend/", "path: services/backend/").replace(
    "backend/\n  - name: stub", "services/backend/\n  - name: stub"
)
NESTED_FILES = {
    f"services/{name}" if name.startswith("backend") else name: text for name, text in CAPABILITY_FILES.items()
}


@pytest.mark.parametrize("how", ["mv services ../else; ln -s ../else services", "rm -r services; echo x > services"])
def test_a_parent_of_a_component_root_that_was_replaced_is_refused(tmp_path: Path, how: str) -> None:
    with Place(tmp_path, sidecar=NESTED, files=NESTED_FILES, local=True) as place:
        because = place.refused(write("stub/x"), shell(how))
        assert "services: is a link or a file in place of a directory" in because


def test_of_two_nested_components_the_longest_prefix_owns_a_path(tmp_path: Path) -> None:
    sidecar = SIDECAR.replace("path: stub/", "path: backend/stub/").replace(
        "dockerfile: stub/", "dockerfile: backend/stub/"
    )
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


@pytest.mark.parametrize(
    "how", ["git init -q backend/sub", "echo x > backend/sub/f", "rmdir backend/sub; echo x > backend/sub"]
)
def test_a_submodule_that_a_session_filled_is_refused(tmp_path: Path, how: str) -> None:
    with with_submodule(tmp_path) as place:
        assert "backend/sub: is a submodule, which a session may not fill" in place.refused(write(NEW), shell(how))
