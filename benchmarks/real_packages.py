"""Published packages as apps of the landing gate: where they come from, and the `gate.yaml` of each.

Each text is a whole `gate.yaml` for the source distribution as it is published; copy one that is laid out as
your own repository is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

GATE_YAML = {
    # A package folder at the root with a test for each module, called as the module is.
    "boltons": """\
language: python
source: boltons
tests: tests
own_tests:
  boltons.debugutils: tests/test_debugutils_trace.py
test_timeout_s: 20
""",
    # The tests lie inside of the package; private modules have tests without the underscore.
    "h11": """\
language: python
source: h11
tests: h11/tests
own_tests:
  h11._readers: h11/tests/test_io.py
  h11._writers: h11/tests/test_io.py
test_timeout_s: 20
""",
    # A `src` layout, whose tests are many: some files have tens of thousands.
    "packaging": """\
language: python
source: src/packaging
tests: tests
runner: [.venv/bin/python, -m, pytest, -p, "no:asyncio"]
own_tests:
  packaging._parser: tests/test_requirements.py
test_timeout_s: 300
""",
    # Tests that are called otherwise than their modules.
    "tinydb": """\
language: python
source: tinydb
tests: tests
own_tests:
  tinydb.database: tests/test_tinydb.py
  tinydb.middlewares: tests/test_middlewares.py
  tinydb.queries: tests/test_queries.py
  tinydb.storages: tests/test_storages.py
  tinydb.table: tests/test_tables.py
test_timeout_s: 20
""",
    # A runner with an option of its own: pytest-asyncio warns without it, and here a warning is an error.
    "blinker": """\
language: python
source: src/blinker
tests: tests
runner: [.venv/bin/python, -m, pytest, -o, asyncio_default_fixture_loop_scope=function]
own_tests:
  blinker._utilities: tests/test_symbol.py
  blinker.base: tests/test_signals.py
test_timeout_s: 20
""",
    "pathspec": """\
language: python
source: pathspec
tests: tests
own_tests:
  pathspec._backends.simple.gitignore: tests/test_06_gitignore.py
  pathspec._backends.simple.pathspec: tests/test_05_pathspec.py
  pathspec.gitignore: tests/test_06_gitignore.py
  pathspec.pathspec: tests/test_05_pathspec.py
  pathspec.pattern: tests/test_04_gitignore_spec.py
  pathspec.patterns.gitignore.base: tests/test_02_gitignore_base.py
  pathspec.patterns.gitignore.basic: tests/test_03_gitignore_basic.py
  pathspec.patterns.gitignore.spec: tests/test_04_gitignore_spec.py
  pathspec.util: tests/test_01_util.py
test_timeout_s: 20
""",
    # Several classes of one module, each with a test of its own.
    "cachetools": """\
language: python
source: src/cachetools
tests: tests
own_tests:
  cachetools.FIFOCache: tests/test_fifo.py
  cachetools.LFUCache: tests/test_lfu.py
  cachetools.LRUCache: tests/test_lru.py
  cachetools.RRCache: tests/test_rr.py
  cachetools.TLRUCache: tests/test_tlru.py
  cachetools.TTLCache: tests/test_ttl.py
  cachetools._descriptor: tests/test_cachedmethod.py
test_timeout_s: 20
""",
}

NEEDED = ("pytest", "pytest-asyncio", "hypothesis", "pretend", "tomli-w", "pyyaml")
"""What the packages' own tests need; they share one environment."""


def fetched(name: str, cache: Path) -> Path:
    """The source distribution of a package, downloaded by its name when the cache has none."""
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob(f"{name}-*.tar.gz")):
        options = ("--quiet", "--no-binary", ":all:", "--no-deps", "--dest", str(cache))
        subprocess.run((sys.executable, "-m", "pip", "download", *options, name), check=True)
    (archive,) = cache.glob(f"{name}-*.tar.gz")
    return archive


def environment(cache: Path) -> Path:
    """The environment that the packages' tests run in, made when the cache has none."""
    place = cache / "venv"
    if not (place / "ready").exists():
        subprocess.run((sys.executable, "-m", "venv", str(place)), check=True)
        subprocess.run((str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *NEEDED), check=True)
        (place / "ready").touch()
    return place


def unpacked(name: str, cache: Path, place: Path) -> Path:
    """A fresh copy of a package in an empty place, with its `gate.yaml` and the environment as its `.venv`."""
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(fetched(name, cache)) as packed:
        packed.extractall(place, filter="data")
    (root,) = place.iterdir()
    (root / "gate.yaml").write_text(GATE_YAML[name])
    (root / ".venv").symlink_to(environment(cache))
    return root.resolve()
