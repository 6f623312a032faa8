"""Git as the actor runs it: with a login that shows nowhere, and nothing in force that others configured."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.demo.git_http import GitServer
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.git import Git, Remote, make_git_dir
from foundry_implementation_actor.system.process import Stop
from support.place import TOKEN, Place, write
from support.repos import SOURCE_REPO, Repo, capability_repo

# Stands in for git, notes what it and what it starts were given, and then is git.
SPY = """\
#!/bin/sh
note=$(mktemp NOTES/git.XXXXXX)
{ printf '%s\\n' "$@"; env; } > $note
exec REAL "$@"
"""


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[GitServer]:
    capability_repo(tmp_path / "forge")
    with GitServer(tmp_path / "forge", TOKEN) as server:
        yield server


def remote(forge: GitServer, token: str = TOKEN) -> Remote:
    return Remote(f"{forge.url}/{SOURCE_REPO}.git", token)


def fresh_git(tmp_path: Path, path: str = "", **more: str) -> Git:
    make_git_dir(tmp_path / "own.git", "ref: refs/heads/none", bare=True)
    return Git(tmp_path / "own.git", {"PATH": path or os.environ["PATH"], **more}, 30.0)


@pytest.fixture
def spy(tmp_path: Path) -> Path:
    """A directory with a `git` that notes each call in `notes` beside it."""
    folder, notes = tmp_path / "spy", tmp_path / "notes"
    folder.mkdir()
    notes.mkdir()
    text = SPY.replace("NOTES", str(notes)).replace("REAL", shutil.which("git") or "git")
    (folder / "git").write_text(text)
    (folder / "git").chmod(0o755)
    return folder


def test_the_token_is_in_no_argv_and_no_environment_of_a_whole_run(tmp_path: Path, spy: Path) -> None:
    with Place(tmp_path / "place", settings={"PATH": f"{spy}:{os.environ['PATH']}"}) as place:
        place.landed(write("backend/x"))
    notes = [note.read_text() for note in (tmp_path / "notes").iterdir()]
    assert any("push" in note.splitlines() for note in notes)
    assert any("fetch" in note.splitlines() for note in notes)
    assert not [note for note in notes if TOKEN in note or "GITHUB_TOKEN" in note]


def test_the_login_is_given_to_its_own_forge_and_to_no_other(forge: GitServer, tmp_path: Path) -> None:
    with GitServer(tmp_path / "forge", TOKEN) as other:
        git = fresh_git(tmp_path)
        done = git.remotely(remote(forge), "ls-remote", f"{other.url}/{SOURCE_REPO}.git")
        assert not done.ok
        assert {request.status for request in other.served} == {401}
        assert git.remotely(remote(forge), "ls-remote", remote(forge).url).ok


def test_two_logins_at_once_do_not_mix(forge: GitServer, tmp_path: Path) -> None:
    git = fresh_git(tmp_path)
    good, bad = remote(forge), remote(forge, "tok-wrong")
    assert [git.remotely(one, "ls-remote", one.url).ok for one in (good, bad, good)] == [True, False, True]


def test_configuration_of_the_user_and_the_environment_is_not_read(
    forge: GitServer, tmp_path: Path, home: Path
) -> None:
    (home / ".gitconfig").write_text(
        f'[url "file:///nowhere/"]\n\tinsteadOf = {forge.url}\n[alias]\n\tls-remote = !false\n'
    )
    git = fresh_git(tmp_path, HOME=str(home))
    assert git.remotely(remote(forge), "ls-remote", remote(forge).url).ok


def test_names_come_back_as_they_are(tmp_path: Path) -> None:
    repo = capability_repo(tmp_path / "forge")
    odd = ["café", "a\nb", 'a"b', "-x"]
    repo.add_commit("main", {f"backend/{name}": "x" for name in odd})
    git = Git(repo.path, {"PATH": os.environ["PATH"]}, 30.0)
    listed = git.records("ls-tree", "-r", "-z", "--name-only", "main")
    assert {f"backend/{name}" for name in odd} <= set(listed)


def test_a_path_is_never_a_pattern(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.path.mkdir()
    repo.git("init", "-q")
    repo.commit({"*": "1", "a": "2"})
    git = Git(repo.path / ".git", {"PATH": os.environ["PATH"]}, 30.0, work_tree=repo.path)
    assert git.records("ls-files", "-z", "--", "*") == ["*"]


def test_git_that_takes_too_long_is_told_with_the_variable_to_raise(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (folder / "git").chmod(0o755)
    git = Git(tmp_path, {"PATH": f"{folder}:{os.environ['PATH']}"}, 0.1)
    with pytest.raises(ActorError, match=r"git status did not end within 0\.1 s; raise CLONE_TIMEOUT_S"):
        git.text("status")


def test_git_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="the program 'git' was not found") as raised:
        Git(tmp_path, {"PATH": str(tmp_path)}, 1.0).text("status")
    assert raised.value.code is Code.UNFIT


def test_a_stop_ends_git(tmp_path: Path) -> None:
    stop = Stop()
    stop.set()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (folder / "git").chmod(0o755)
    with pytest.raises(ActorError, match="git status was stopped") as raised:
        Git(tmp_path, {"PATH": f"{folder}:{os.environ['PATH']}"}, 30.0, stop=stop).text("status")
    assert raised.value.code is Code.INTERRUPTED


def test_what_git_says_is_passed_on_when_it_means_nothing_special(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="git cat-file failed: fatal: Not a valid object name nonsense"):
        fresh_git(tmp_path).text("cat-file", "-t", "nonsense")
