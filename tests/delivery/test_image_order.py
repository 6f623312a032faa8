"""What a builder is asked to read lies inside the commit's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.domain.error import ActorError, Code


@pytest.mark.parametrize("way", ["../outside", "link", "link/below"])
@pytest.mark.parametrize("part", ["context", "dockerfile"])
def test_a_directory_that_leads_out_of_the_export_is_refused(tmp_path: Path, way: str, part: str) -> None:
    (tmp_path / "outside" / "below").mkdir(parents=True)
    export = tmp_path / "export"
    (export / "backend").mkdir(parents=True)
    (export / "link").symlink_to(tmp_path / "outside")
    folders = {"context": "backend/", "dockerfile": "backend", part: way}
    with pytest.raises(ActorError, match="leads out of the commit") as refused:
        ImageOrder(export, folders["context"], folders["dockerfile"], "r/x:1", created=0).check()
    assert refused.value.code is Code.UNFIT


def test_a_link_that_stays_inside_the_export_is_taken(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    (tmp_path / "link").symlink_to("backend")
    ImageOrder(tmp_path, "backend/", "link", "r/x:1", created=0).check()


def test_a_dockerfile_that_is_a_link_out_of_the_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "export" / "backend").mkdir(parents=True)
    (tmp_path / "export" / "backend" / "Dockerfile").symlink_to(tmp_path / "other")
    with pytest.raises(ActorError, match="'backend/Dockerfile' leads out of the commit"):
        ImageOrder(tmp_path / "export", "backend/", "backend", "r/x:1", created=0).check()
