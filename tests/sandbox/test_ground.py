"""The folder of a self-check: what a killed check left is swept at the next one, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.sandbox.ground import PREFIX, ground
from foundry_implementation_actor.sandbox.places import plain_user

_HOLDS = """
import sys
from foundry_implementation_actor.sandbox.ground import ground
with ground() as base:
    (base / "hidden").mkdir()
    print(base, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def above(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not below `tmp_path`, whose name may be too long for a check's sockets.
    with tempfile.TemporaryDirectory(prefix="ground-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder).resolve()


def killed(above: Path) -> Path:
    """What a check leaves that is killed in the midst of it; seen to be kept while the check lives."""
    words, environment = (sys.executable, "-c", _HOLDS), {"TMPDIR": str(above)}
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as check:  # fmt: skip
        assert check.stdout is not None
        base = Path(check.stdout.readline().strip())
        with ground():
            assert (base / "hidden").is_dir()
        check.kill()
    return base


def test_a_folder_is_kept_while_its_check_lives_and_swept_when_it_was_killed(above: Path) -> None:
    left = killed(above)
    assert (left.parent, left.name.startswith(PREFIX), left.exists()) == (above, True, True)
    with ground() as base:
        assert list(above.iterdir()) == [base]
    assert list(above.iterdir()) == []


def test_a_link_or_a_file_of_such_a_name_is_left_alone(above: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (above / f"{PREFIX}link").symlink_to(tmp_path)
    (above / f"{PREFIX}file").write_text("kept")
    with ground():
        pass
    assert (tmp_path / "mine").read_text() == "kept"
    assert sorted(path.name for path in above.iterdir()) == [f"{PREFIX}file", f"{PREFIX}link"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder to another user")
def test_a_folder_that_was_given_to_the_plain_user_is_swept_by_root(above: Path) -> None:
    left = killed(above)
    os.chown(left, *plain_user())
    with ground() as base:
        assert list(above.iterdir()) == [base]
