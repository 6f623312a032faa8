"""A patch is there whole or not at all, whatever else lies in the directory and whatever the clock says."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from foundry_implementation_actor.workspace.artifacts import MOST_KEPT, Artifact, store

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
OTHERS = "T-20260101T000000.{:06}Z.patch"


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may be larger than 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("artifact", [Artifact(b"x" * 2_000, b"{}"), Artifact(b"x", b"{" * 2_000)])
def test_when_there_is_no_room_for_both_neither_is_left(tmp_path: Path, artifact: Artifact) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        store(tmp_path, "TASK-1", MOMENT, artifact)
    assert not list(tmp_path.iterdir())


def test_the_newest_stays_although_the_clock_was_set_back(tmp_path: Path) -> None:
    for number in range(MOST_KEPT):
        place = tmp_path / OTHERS.format(number)
        place.write_text("older")
        os.utime(place, (2**33, 2**33 + number))
    kept = store(tmp_path, "TASK-1", MOMENT, Artifact(b"x", b"{}"))
    assert kept.read_bytes() == b"x"
    assert len(list(tmp_path.glob("*.patch"))) == MOST_KEPT
    assert not (tmp_path / OTHERS.format(0)).exists()


def test_a_directory_that_is_named_like_a_patch_is_let_be(tmp_path: Path) -> None:
    for number in range(MOST_KEPT + 1):
        (tmp_path / OTHERS.format(number)).mkdir()
    store(tmp_path, "TASK-1", MOMENT, Artifact(b"x", b"{}"))
    assert len(list(tmp_path.glob("T-*.patch"))) == MOST_KEPT + 1
