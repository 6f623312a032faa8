"""A registry that is down, full, or cut off in the middle of a push: said in words, and mended by asking again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from support.forwarder import Forwarder
from support.place import BRANCH, Place, write
from support.publishing import REPOSITORY, Bench, need_buildah
from support.registry import LoopbackRegistry
from support.repos import CAPABILITY_FILES

FILES = {**CAPABILITY_FILES, "backend/large": os.urandom(3_000_000), "backend/Dockerfile": "FROM scratch\nCOPY . /\n"}
NOBODY_LISTENS = "127.0.0.1:9"


@pytest.fixture
def line(registry: LoopbackRegistry) -> Iterator[Forwarder]:
    """The way to the registry, which may be cut after a megabyte."""
    with Forwarder(registry.host, after=1_000_000) as line:
        yield line


def publishing(base: Path, host: str) -> Place:
    images = {"IMAGES": "on", "IMAGE_BUILDER": "buildah", "IMAGE_REGISTRY": f"{host}/foundry", "REGISTRY_TLS": "off"}
    return Place(base / "place", files=FILES, local=True, settings=images)


def test_a_registry_that_is_down_is_told_before_a_session_and_soon(tmp_path: Path) -> None:
    need_buildah()
    with publishing(tmp_path, NOBODY_LISTENS) as place:
        started = time.monotonic()
        with pytest.raises(ActorError, match=r"the registry does not answer.*Connection refused") as raised:
            place.run(write("backend/x"))
        assert time.monotonic() - started < 10
        assert raised.value.code is Code.UNFIT
        assert raised.value.where == NOBODY_LISTENS
        assert not place.session_ran


def test_a_push_that_is_cut_once_is_sent_again_by_itself(tmp_path: Path, line: Forwarder) -> None:
    bench = Bench(tmp_path / "bench", line.host)
    bench.add({"large": os.urandom(3_000_000)})
    line.cuts = 1
    bench.publish()
    assert line.cuts == 0


def test_a_push_that_is_always_cut_is_told_and_asking_again_goes_on_at_the_images(
    tmp_path: Path, line: Forwarder, registry: LoopbackRegistry
) -> None:
    with publishing(tmp_path, line.host) as place:
        line.cuts = -1
        reply = place.run(write("backend/x"), write("stub/x"))
        assert reply["accepted"] is False
        commit = place.repo.branches()[BRANCH]
        version = f"0.1.0-task-1-{commit[:7]}"
        stub = f"{line.host}/foundry/acme.parts/sup.007.wid/stub:{version}"
        backend = f"{line.host}/{REPOSITORY}:{version}"
        assert f"the branch {BRANCH} is pushed at {commit[:12]}" in reply["because"]
        assert f"Published: {stub}. Not published: {backend}: the image could not be pushed: " in reply["because"]
        assert registry.tags(REPOSITORY) == []
        line.cuts = 0
        again = place.run(write("backend/never"))
        assert again == {"accepted": True, "branch": BRANCH, "images": [backend, stub]}
        assert len(place.recorded("session", "start")) == 1
        assert [record["was_there"] for record in place.recorded("image-published")] in (
            [False, True, False],
            [False, False, True],
        )
        assert registry.pull(f"{registry.host}/{REPOSITORY}:{version}").files["large"][1] == FILES["backend/large"]


def test_a_registry_that_goes_down_before_the_push_is_told_and_asking_again_goes_on_at_the_images(
    tmp_path: Path,
) -> None:
    with LoopbackRegistry(tmp_path / "registry") as registry, publishing(tmp_path, registry.host) as place:

        def go_down(record: dict[str, object]) -> None:
            if record.get("step") == "branch-pushed":
                registry.stop()

        place.on_record = go_down
        reply = place.run(write("backend/x"))
        assert reply["accepted"] is False
        assert "Published: none. Not published: " in reply["because"]
        assert "Connection refused" in reply["because"]
        place.on_record = lambda _: None
        registry.start()
        again = place.run(write("backend/never"))
        assert again["accepted"] is True
        assert registry.pull(again["images"][0]).files["x"][1] == b"x = 1\n"
        assert len(place.recorded("session", "start")) == 1


def test_a_registry_that_is_full_is_told(tmp_path: Path) -> None:
    need_buildah()
    # Debian's says no more than that it cannot; its log has the reason.
    with LoopbackRegistry(tmp_path / "registry", room=1_000_000) as registry:
        bench = Bench(tmp_path / "bench", registry.host)
        bench.add({"large": os.urandom(3_000_000)})
        with pytest.raises(ActorError, match=r"the image could not be pushed: .* 500 Internal Server Error") as raised:
            bench.publish()
        assert raised.value.code is Code.UNFIT
        assert registry.tags(REPOSITORY) == []
