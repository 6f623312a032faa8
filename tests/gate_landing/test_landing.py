"""A body lands whole, in the place of the bytes that were judged, or not at all."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.gate.landing import NotLanded, alone, count, land, recover
from support.landing import NEW, OLD, candidate, candidates, facts, lay, left_over, live
from support.plain import plain_python, run_as_plain


def landed(root: Path, bodies: dict[str, bytes] = NEW) -> NotLanded | None:
    with alone(root):
        return land(root, candidates(bodies))


def test_a_body_replaces_the_file_and_keeps_its_mode(tmp_path: Path) -> None:
    lay(tmp_path)
    (tmp_path / "src/a.py").chmod(0o751)
    assert landed(tmp_path, {"src/a.py": b"new"}) is None
    content, mode, *_ = facts(tmp_path / "src/a.py")
    assert (content, stat.S_IMODE(mode)) == (b"new", 0o751)
    assert left_over(tmp_path) == []


def test_extended_attributes_and_the_owner_stay(tmp_path: Path) -> None:
    path = lay(tmp_path) / "src/a.py"
    os.setxattr(path, "user.origin", b"here")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    owner = facts(path)[2:4]
    assert landed(tmp_path) is None
    assert os.getxattr(path, "user.origin") == b"here"
    assert facts(path)[2:4] == owner


def test_several_bodies_land_together(tmp_path: Path) -> None:
    lay(tmp_path)
    assert landed(tmp_path) is None
    assert live(tmp_path) == NEW
    assert left_over(tmp_path) == []
    assert count(tmp_path) == 1


def test_a_body_that_changes_nothing_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = lay(tmp_path) / "src/a.py"
    before = facts(path)
    assert landed(tmp_path, {"src/a.py": OLD["src/a.py"]}) is None
    assert facts(path) == before
    assert count(tmp_path) == 0


def test_compiled_code_of_the_old_body_never_passes_for_the_new_one(tmp_path: Path) -> None:
    path = lay(tmp_path, {"src/a.py": b"x = 1"}) / "src/a.py"
    os.utime(path, (path.stat().st_mtime + 1, path.stat().st_mtime + 1))
    before = int(path.stat().st_mtime)
    with alone(tmp_path):
        land(tmp_path, [candidate("src/a.py", b"x = 2", b"x = 1")])
    assert int(path.stat().st_mtime) > before


def _changed(path: Path) -> None:
    path.write_bytes(b"somebody else's")


def _gone(path: Path) -> None:
    path.unlink()


def _no_folder(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.parent.rename(path.parent.with_name("elsewhere"))


def _link(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def _linked_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _read_only(path: Path) -> None:
    path.chmod(0o444)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (_changed, "was changed by somebody else"),
        (_gone, "is gone"),
        (_no_folder, "is gone"),
        (_link, "is a link"),
        (_linked_folder, "lies behind a link"),
        (_folder, "is no regular file"),
        (_pipe, "is no regular file"),
        (_read_only, "is read-only"),
    ],
)
def test_nothing_lands_when_one_file_is_not_what_was_judged(tmp_path: Path, meanwhile: object, said: str) -> None:
    lay(tmp_path)
    assert callable(meanwhile)
    meanwhile(tmp_path / "src/deep/b.py")
    first = facts(tmp_path / "src/a.py")
    missed = landed(tmp_path)
    assert missed is not None
    assert (missed.path, said in missed.message) == ("src/deep/b.py", True)
    assert facts(tmp_path / "src/a.py") == first
    assert left_over(tmp_path) == []


@contextmanager
def immutable(path: Path) -> Iterator[None]:
    if os.geteuid() != 0 or subprocess.run(["chattr", "+i", path], check=False, capture_output=True).returncode:
        pytest.skip("this filesystem, or this user, cannot make a file immutable")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


def test_when_the_second_file_cannot_be_replaced_the_first_is_as_it_was(tmp_path: Path) -> None:
    lay(tmp_path)
    before = {name: facts(tmp_path / name) for name in OLD}
    os.link(tmp_path / "src/a.py", tmp_path / "witness")

    def vanish(step: str) -> None:
        if step == "renamed":
            (tmp_path / "src/deep/b.py").unlink(missing_ok=True)
            (tmp_path / "src/deep/b.py").mkdir()

    with alone(tmp_path), pytest.raises(ActorError) as caught:
        land(tmp_path, candidates(), vanish)
    assert caught.value.code is Code.UNFIT
    assert facts(tmp_path / "src/a.py") == before["src/a.py"]
    assert (tmp_path / "src/a.py").samefile(tmp_path / "witness")
    assert left_over(tmp_path) == []


def test_an_interrupt_in_the_middle_leaves_all_as_it_was(tmp_path: Path) -> None:
    lay(tmp_path)

    def interrupt(step: str) -> None:
        if step == "synced":
            raise KeyboardInterrupt

    with alone(tmp_path), pytest.raises(KeyboardInterrupt):
        land(tmp_path, candidates(), interrupt)
    assert live(tmp_path) == OLD
    assert left_over(tmp_path) == []


def test_a_file_that_may_not_be_written_is_an_unfit_host_and_is_untouched(tmp_path: Path) -> None:
    path = lay(tmp_path) / "src/a.py"
    before = facts(path)
    with immutable(path), pytest.raises(ActorError) as caught:
        landed(tmp_path)
    assert caught.value.code is Code.UNFIT
    assert "src/a.py" in caught.value.where
    assert facts(path)[:2] == before[:2]
    assert live(tmp_path) == OLD
    assert left_over(tmp_path) == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small filesystem here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("room", [0, 4_096, 8_192, 16_384, 24_576, 40_960])
def test_a_full_disk_leaves_every_file_as_it_was(full_disk: Path, room: int) -> None:
    lay(full_disk)
    with alone(full_disk):
        pass
    before = {name: facts(full_disk / name) for name in OLD}
    free = os.statvfs(full_disk)
    (full_disk / "filling").write_bytes(b"x" * max(0, free.f_bavail * free.f_frsize - room))
    with pytest.raises(ActorError) as caught:
        landed(full_disk)
    assert caught.value.code is Code.UNFIT
    assert "No space left" in str(caught.value)
    assert {name: facts(full_disk / name) for name in OLD} == before
    assert left_over(full_disk) == []
    (full_disk / "filling").unlink()
    assert landed(full_disk) is None


def test_a_file_size_limit_is_like_a_full_disk(tmp_path: Path) -> None:
    lay(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(ActorError):
            landed(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert live(tmp_path) == OLD
    assert left_over(tmp_path) == []


def test_a_state_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    app, elsewhere = lay(tmp_path / "app"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (app / ".foundry").symlink_to(elsewhere)
    with pytest.raises(ActorError, match=r"\.foundry.*a link"):
        landed(app)
    assert list(elsewhere.iterdir()) == []
    assert live(app) == OLD
    assert recover(app) == []


def test_of_two_writers_that_judged_the_same_text_one_lands_and_one_is_told(tmp_path: Path) -> None:
    for _ in range(20):
        root = lay(tmp_path)
        bodies = [{"src/a.py": b"first" * 1_000}, {"src/a.py": b"second" * 1_000}]
        with ThreadPoolExecutor(2) as writers:
            said = list(writers.map(landed, [root, root], bodies))
        assert sum(one is None for one in said) == 1
        assert live(root)["src/a.py"] in [body["src/a.py"] for body in bodies]
        assert left_over(root) == []


def test_a_reader_sees_only_whole_bodies(tmp_path: Path) -> None:
    root, name = lay(tmp_path, {"src/a.py": b"0" * 9_000}), "src/a.py"
    bodies = [bytes([49 + at % 8]) * (9_000 + at) for at in range(40)]
    stop, torn = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            content = (root / name).read_bytes()
            if (content and content.count(content[:1]) != len(content)) or len(content) < 9_000:
                torn.append(content)

    reader = threading.Thread(target=read)
    reader.start()
    old = b"0" * 9_000
    for body in bodies:
        with alone(root):
            assert land(root, [candidate(name, body, old)]) is None
        old = body
    stop.set()
    reader.join()
    assert torn == []


@given(st.binary(max_size=300), st.binary(max_size=300), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_bytes_land_as_they_are_or_the_file_is_untouched(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, moved: bool
) -> None:
    root = lay(tmp_path_factory.mktemp("app"), {"src/a.py": old})
    judged = old + b"!" if moved else old
    with alone(root):
        missed = land(root, [candidate("src/a.py", new, judged)])
    assert (missed is None) is not moved
    assert live(root) == {"src/a.py": old if moved else new}


_AS_PLAIN = """
import sys
from pathlib import Path
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.gate.landing import alone, land
root = Path(sys.argv[1])
body = Candidate(Place(Target("plugin", "A"), "src/a.py", "a", is_test=False), b"new", (root / "src/a.py").read_bytes())
try:
    with alone(root):
        land(root, [body])
except ActorError as error:
    print(error)
"""


@pytest.mark.skipif(
    os.getuid() != 0 or not plain_python(), reason="needs root, and a Python that a plain user may start"
)
def test_a_file_of_another_user_stays_theirs_and_is_not_landed_in() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a folder of pytest's own lets nobody else through
        root = lay(Path(folder))
        for place in (root, root / "src"):
            place.chmod(0o777)
        before = facts(root / "src/a.py")
        said = run_as_plain(_AS_PLAIN, str(root))
        assert "the file is of root, and only that user or root can land in it" in said
        assert (facts(root / "src/a.py"), live(root), left_over(root)) == (before, OLD, [])
