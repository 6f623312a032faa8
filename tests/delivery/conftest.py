"""What most tests of real images share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.publishing import need_buildah
from support.registry import LoopbackRegistry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[LoopbackRegistry]:
    """A registry that speaks plain HTTP and wants no login, for images that buildah makes."""
    need_buildah()
    with LoopbackRegistry(tmp_path / "registry") as registry:
        yield registry
