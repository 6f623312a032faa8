"""Images of a request that is asked again: of what was delivered, whatever the default branch has become."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.building import Builder, publishing
from support.place import BRANCH, Place, write
from support.registry import LoopbackRegistry

NEW = "backend/discount.py"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[LoopbackRegistry]:
    with LoopbackRegistry(tmp_path / "registry") as registry:
        yield registry


@pytest.fixture
def place(tmp_path: Path, registry: LoopbackRegistry) -> Iterator[Place]:
    with publishing(tmp_path, Builder(tmp_path / "builder", registry.host)) as place:
        yield place


def sessions(place: Place) -> int:
    return len(place.recorded("session", "start"))


def squash_merge(place: Place) -> str:
    """Put the branch onto the default branch as one other commit with its message, and delete it; that commit."""
    message = place.repo.git("log", "-1", "--format=%B", BRANCH)
    tree, branch = f"{BRANCH}^{{tree}}", f"refs/heads/{BRANCH}"
    merged = place.repo.git("commit-tree", tree, "-p", "main", "-F", "-", stdin=f"{message}\n".encode())
    place.repo.git("update-ref", "refs/heads/main", merged)
    place.repo.git("update-ref", "-d", branch)
    return merged


def test_an_image_that_the_registry_lost_is_published_again_by_the_same_actor(
    place: Place, registry: LoopbackRegistry
) -> None:
    engine = place.engine(write(NEW))
    first = place.ask(engine)
    assert place.ask(engine) == first
    assert not place.recorded("already-delivered")
    (image,) = first["images"]
    repository, _, tag = image.removeprefix(f"{registry.host}/").rpartition(":")
    registry.delete(repository, registry.pull(image).digest)
    assert place.ask(engine) == first
    assert registry.tags(repository) == [tag]
    assert sessions(place) == 1


def test_a_delivered_branch_is_judged_by_itself_and_not_by_todays_default_branch(place: Place) -> None:
    first = place.run(write(NEW))
    place.repo.git("read-tree", "main")
    place.repo.git("rm", "--cached", "-q", "stub/Dockerfile", "backend/Dockerfile")
    moved = place.repo.git("commit-tree", place.repo.git("write-tree"), "-p", "main", "-m", "away with them")
    place.repo.git("update-ref", "refs/heads/main", moved)
    assert place.run(write(NEW)) == first
    assert sessions(place) == 1
    assert "these Dockerfiles are not" in place.run(write(NEW), title="Another")["because"]


def test_an_attempt_after_a_squash_merge_publishes_only_what_it_touches_itself(place: Place) -> None:
    assert len(place.run(write(NEW), write("stub/more.json"))["images"]) == 2
    merged = squash_merge(place)
    again = place.run(write(NEW), write("stub/more.json"))
    assert again["accepted"] is True
    assert len(again["images"]) == 2
    assert place.recorded("already-delivered")[0]["commit"] == merged
    (image,) = place.run(write("backend/other.py"), title="Another")["images"]
    assert "/backend:" in image
    assert sessions(place) == 2
