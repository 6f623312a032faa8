"""The repositories that tests stand on."""

from __future__ import annotations

from pathlib import Path

from support.repos import IMAGE_TAGS, SOURCE_REPO, capability_repo, make_repo


def test_the_same_files_give_the_same_commit(tmp_path: Path) -> None:
    assert make_repo(tmp_path / "a", {"f": "x"}).sha() == make_repo(tmp_path / "b", {"f": "x"}).sha()


def test_a_capability_repository_is_bare_and_carries_its_image_tags(tmp_path: Path) -> None:
    repo = capability_repo(tmp_path)
    assert repo.path == tmp_path / f"{SOURCE_REPO}.git"
    assert set(repo.tags()) == set(IMAGE_TAGS)
    assert list(repo.branches()) == ["main"]
    assert {"backend/Dockerfile", "stub/Dockerfile", "actor-agentic-context.yaml"} <= set(repo.files())


def test_odd_names_and_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    odd = ["café.py", "a b", 'a"b', "a\nb", "a\\b"]
    repo = make_repo(tmp_path / "tree", {name: name for name in odd}).bare(tmp_path / "bare.git")
    repo.add_commit("main", {f"later/{name}": b"\x00\xff" for name in odd})
    assert set(repo.files()) == {*odd, *(f"later/{name}" for name in odd)}


def test_someone_elses_commit_goes_on_top_of_a_bare_branch(tmp_path: Path) -> None:
    repo = capability_repo(tmp_path)
    made = repo.add_commit("impl/t1", {"backend/x.py": "X = 1\n"})
    assert repo.branches() == {"main": repo.sha("main"), "impl/t1": made}
    assert repo.read("backend/x.py", "impl/t1") == "X = 1"
