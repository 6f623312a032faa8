"""What hid a session's files from being counted once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from foundry_implementation_actor.system.footprint import footprint
from support.plain import plain_python, run_as_plain

FILE = 1_000_000
COMING_AND_GOING = """
import os, sys
os.chdir(sys.argv[1])
print(flush=True)
while True:
    for n in range(300): open(f"c{n}", "w").close()
    for n in range(300): os.unlink(f"c{n}")
"""
CLOSED = """
import os, pathlib, tempfile
from foundry_implementation_actor.system.footprint import footprint
place = pathlib.Path(tempfile.mkdtemp())
for mode in (0o000, 0o400, 0o100):
    folder = place / str(mode) / "deep"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 1_000_000)
    for one in (folder, folder.parent):
        one.chmod(mode)
place.joinpath("locked").mkdir(0o555)
print(footprint([place]).size >= 3_000_000, oct((place / "locked").stat().st_mode)[-3:])
from foundry_implementation_actor.system.files import remove_tree
remove_tree(place)
"""


def test_files_that_come_and_go_hide_none_that_stay(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"b{number}").write_bytes(b"x" * FILE)
    program = (sys.executable, "-I", "-S", "-c", COMING_AND_GOING, str(tmp_path))
    with subprocess.Popen(program, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout
            other.stdout.readline()
            assert min(footprint([tmp_path]).size for _ in range(100)) >= 20 * FILE
        finally:
            other.kill()


@pytest.mark.skipif(not plain_python(), reason="no interpreter here that a plain user may start")
def test_a_directory_that_is_closed_to_its_own_user_hides_nothing() -> None:
    assert run_as_plain(CLOSED).split() == ["True", "555"]
