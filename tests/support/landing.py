"""Candidates for landing tests, a process that is killed while it lands, and what is left in a tree."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from foundry_implementation_actor.domain.unit import Candidate, Place, Target

OLD = {"src/a.py": b"class A:\n    old = 1\n", "src/deep/b.py": b"\xef\xbb\xbfclass B:\r\n    old = 1"}
NEW = {"src/a.py": b"class A:\n    new = 22\n", "src/deep/b.py": b"class B:\n    new = 22\n" * 2_000}


def lay(root: Path, files: Mapping[str, bytes] = OLD) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def candidate(path: str, content: bytes, original: bytes) -> Candidate:
    return Candidate(Place(Target("plugin", "A"), path, "a", is_test=False), content, original)


def candidates(new: Mapping[str, bytes] = NEW, old: Mapping[str, bytes] = OLD) -> list[Candidate]:
    return [candidate(path, content, old[path]) for path, content in new.items()]


def live(root: Path) -> dict[str, bytes]:
    """Every file below `src` by its path: what an import or a reader could see."""
    return {str(path.relative_to(root)): path.read_bytes() for path in (root / "src").rglob("*") if path.is_file()}


def facts(path: Path) -> tuple[bytes, int, int, int, int]:
    """A file's bytes, mode, owner and time of change."""
    found = path.stat()
    return path.read_bytes(), found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns


def left_over(root: Path) -> list[str]:
    """Whatever a landing, a placement or a staging left that nobody will use."""
    found = [path for path in root.rglob("*") if path.suffix in {".landing", ".kept", ".new", ".dropped", ".candidate"}]
    records = [path for name in ("landing", "journal") for path in (root / ".foundry" / name).glob("*.json")]
    return sorted(str(path.relative_to(root)) for path in [*found, *records])


def killed(work: Callable[[], object], after_s: float | None = None) -> bool:
    """Do work in a process of its own; kill it after a while. Says whether it was killed, by whomever."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    handle = os.pidfd_open(child)
    if after_s is not None and not select.select([handle], [], [], after_s)[0]:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(handle)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, -signal.SIGKILL}, f"the child ended with {code}"
    return code != 0


def dying_at(number: int) -> Callable[[str], None]:
    """A step callback that kills its own process at the step of this number, counted from 1."""
    taken = 0

    def step(_: str) -> None:
        nonlocal taken
        taken += 1
        if taken == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return step
