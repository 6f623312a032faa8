"""What a body that is judged at its live path must leave alone: its test, and what sets its test up."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.system.files import remove_tree

_SETTINGS = (
    "conftest.py", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "gate.yaml",
    "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", "composer.json",
)  # fmt: skip


@dataclass(frozen=True)
class File:
    """A file as it stood."""

    content: bytes
    found: os.stat_result


Seen = Mapping[Path, File | None]
"""Each guarded path with what stood there; None where nothing did."""


def look(root: Path, tests: Iterable[str]) -> Seen:
    """What stands in the test files (paths below the root), the conftests above them and the app's settings."""
    guarded = {root / name for name in _SETTINGS}
    for test in tests:
        guarded.add(root / test)
        guarded.update(root / folder / "conftest.py" for folder in PurePosixPath(test).parents)
    return {path: remembered(path) for path in sorted(guarded)}


def put_back(seen: Seen) -> list[Path]:
    """Undo every change since `look`, from memory: the paths that were changed."""
    changed = [path for path, before in seen.items() if not _same(before, remembered(path), path)]
    for path in changed:
        restore(path, seen[path])
    return changed


def restore(path: Path, before: File | None) -> None:
    """Make a path hold what it held, with its mode, owner and times, whatever stands there now."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    if before is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{secrets.token_hex(8)}.candidate")
    aside.write_bytes(before.content)
    with contextlib.suppress(PermissionError):
        os.chown(aside, before.found.st_uid, before.found.st_gid)
    aside.chmod(before.found.st_mode & 0o7777)
    os.utime(aside, ns=(before.found.st_atime_ns, before.found.st_mtime_ns))
    aside.replace(path)


def remembered(path: Path) -> File | None:
    """What stands at a path, as `restore` wants it; None where no file is."""
    try:
        return File(path.read_bytes(), path.stat())
    except OSError:
        return None


def _same(before: File | None, now: File | None, path: Path) -> bool:
    if before is None or now is None:
        return before is now and not (before is None and path.is_symlink())
    return before.content == now.content
