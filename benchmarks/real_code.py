"""Judge the classes of published packages by the gate's own judges: what is wrongly refused, what is caught.

    python benchmarks/real_code.py [--cache FOLDER] [--classes N] [--show] [PACKAGE ...]

Each package's source distribution is downloaded by name into a cache folder outside of the repository. Every
class of a module that has a test is judged twice over: its unmodified body against a scaffold of it (no
method does anything), and mutations of the body against the unmodified file. A mutation that no test and no
linkage can see is no fault of the gate; the figures say how many each judge refused.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.judges.bodies import body_judges

JUDGES = ("syntax", "shape", "linkage", "own-test")


@dataclass(frozen=True)
class Package:
    """A source distribution: the folders of its import package and its tests, and which test judges what.

    A module or a class is judged by the test that `named` gives it, else a module by `test_<module>`.
    """

    source: str
    tests: str
    named: dict[str, str] = field(default_factory=dict)

    def test_of(self, module: str, class_: str) -> str:
        """The test file of a class, relative to the distribution's root."""
        name = self.named.get(class_, self.named.get(module, f"test_{module.lstrip('_')}"))
        return f"{self.tests}/{name}.py"


PACKAGES = {
    "boltons": Package("boltons", "tests"),
    "h11": Package("h11", "h11/tests"),
    "packaging": Package("src/packaging", "tests"),
    "tinydb": Package(
        "tinydb", "tests",
        {"table": "test_tables", "database": "test_tinydb", "queries": "test_queries", "storages": "test_storages",
         "middlewares": "test_middlewares"},
    ),
    "blinker": Package("src/blinker", "tests", {"base": "test_signals", "_utilities": "test_symbol"}),
    "pathspec": Package("pathspec", "tests", {"pathspec": "test_05_pathspec", "gitignore": "test_06_gitignore",
                                              "util": "test_01_util"}),
    "cachetools": Package("src/cachetools", "tests", {
        "Cache": "test_cache", "FIFOCache": "test_fifo", "LFUCache": "test_lfu", "LRUCache": "test_lru",
        "RRCache": "test_rr", "TTLCache": "test_ttl", "TLRUCache": "test_tlru",
    }),
}  # fmt: skip


def main() -> None:
    arguments = _arguments()
    totals: Counter[str] = Counter()
    started = time.monotonic()
    for name in arguments.packages or PACKAGES:
        root = _unpacked(name, arguments.cache)
        figures = _judge_package(name, root, PACKAGES[name], arguments.classes, show=arguments.show)
        _print(name, figures)
        totals.update(figures)
    _print("all", totals)
    print(f"{time.monotonic() - started:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("packages", nargs="*", choices=[[], *PACKAGES])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "gate-real-code")
    parser.add_argument("--classes", type=int, default=1_000, help="at most this many classes of a package")
    parser.add_argument("--show", action="store_true", help="print what was refused and why")
    return parser.parse_args()


def _unpacked(name: str, cache: Path) -> Path:
    """A fresh copy of the package's source distribution, downloaded when the cache has none."""
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob(f"{name}-*.tar.gz")):
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps")
        subprocess.run((*pip, "--dest", str(cache), name), check=True)
    (archive,) = cache.glob(f"{name}-*.tar.gz")
    place = cache / "work" / f"{name}-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    (root,) = place.iterdir()
    return root.resolve()


def _judge_package(name: str, root: Path, package: Package, most: int, *, show: bool) -> Counter[str]:
    figures: Counter[str] = Counter()
    app = _app(root, package)
    for path in _modules(root, package):
        for class_ in _classes(root / path)[: max(0, most - figures["classes"])]:
            test = package.test_of(Path(path).stem, class_)
            if not (root / test).exists():
                continue
            place = Place(Target(name, class_), path, _module(path, package), is_test=False, own_test=test)
            figures["classes"] += 1
            figures.update(_unmodified(app, place, show=show))
            figures.update(_mutated(app, place, show=show))
    return figures


def _modules(root: Path, package: Package) -> Iterator[str]:
    for file in sorted((root / package.source).rglob("*.py")):
        if "test" not in file.relative_to(root / package.source).parts[0]:
            yield str(file.relative_to(root))


def _classes(path: Path) -> list[str]:
    tree = ast.parse(path.read_bytes())
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def _module(path: str, package: Package) -> str:
    inside = Path(path).with_suffix("").relative_to(Path(package.source).parent)
    return ".".join(inside.parts).removesuffix(".__init__")


def _app(root: Path, package: Package) -> App:
    source = "src/x" if package.source.startswith("src/") else package.source
    env = {"PATH": os.defpath}
    return App(root, "python", source, package.tests, (sys.executable,), environment=env, test_timeout_s=20)


def _unmodified(app: App, place: Place, *, show: bool) -> Counter[str]:
    """The real body, as a candidate for a scaffold of it that stands in the live file meanwhile."""
    live = app.root / place.path
    whole = live.read_bytes()
    live.write_bytes(_scaffold(whole, place.target.class_))
    try:
        verdicts = _verdicts(app, place, whole)
    finally:
        live.write_bytes(whole)
    refusing = [verdict for verdict in verdicts if verdict.outcome is Outcome.REFUSED]
    figures = Counter({f"unmodified: {verdict.judge} {verdict.outcome}": 1 for verdict in verdicts})
    if refusing:
        figures["unmodified: wrongly refused"] += 1
        _show(f"WRONGLY REFUSED {place.target} ({place.path})", refusing)
    elif show:
        told = "; ".join(f"{v.judge}: {v.cause}" for v in verdicts if v.outcome is Outcome.UNJUDGED)
        print(f"  {place.target}: not refused {told[:300]}", flush=True)
    return figures


def _scaffold(content: bytes, class_: str) -> bytes:
    """The module with nothing done in any method of one class."""
    tree = ast.parse(content)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == class_:
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    method.body = [ast.parse("raise NotImplementedError").body[0]]
    return ast.unparse(tree).encode()


def _verdicts(app: App, place: Place, content: bytes) -> list[Verdict]:
    """The verdicts in order, up to the first refusal."""
    candidate = Candidate(place, content, (app.root / place.path).read_bytes())
    verdicts = []
    with isolated(app, [candidate]) as run:
        for judge in body_judges("python"):
            if judge.name in JUDGES:
                verdicts.append(judge.judge(app, candidate, run))
                if verdicts[-1].outcome is Outcome.REFUSED:
                    break
    return verdicts


def _mutated(app: App, place: Place, *, show: bool) -> Counter[str]:
    figures: Counter[str] = Counter()
    whole = (app.root / place.path).read_bytes()
    for kind, body in _mutations(whole, place.target.class_):
        verdicts = _verdicts(app, place, body)
        refusing = [verdict for verdict in verdicts if verdict.outcome is Outcome.REFUSED]
        figures[f"{kind}: made"] += 1
        figures[f"{kind}: refused by {refusing[0].judge}" if refusing else f"{kind}: not refused"] += 1
        if show:
            _show(f"{kind} in {place.target}: {'refused' if refusing else 'NOT REFUSED'}", refusing)
    return figures


def _mutations(content: bytes, class_: str) -> Iterator[tuple[str, bytes]]:
    """At most one mutation of each kind: the first place in the class where it can be made."""
    for kind, change in (
        ("renamed method", _rename),
        ("dropped import", _drop_import),
        ("dropped argument", _drop_argument),
        ("flipped condition", _flip),
    ):
        tree = ast.parse(content)
        node = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_)
        if change(tree, node):
            yield kind, ast.unparse(tree).encode()


def _rename(_: ast.Module, node: ast.ClassDef) -> bool:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            method.name += "_renamed"
            return True
    return False


def _drop_import(tree: ast.Module, node: ast.ClassDef) -> bool:
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) and getattr(statement, "module", "") != "__future__":
            names = _imported(statement)
            others = {name for other in tree.body if other is not statement for name in _imported(other)}
            if (names & used) - others:
                tree.body[tree.body.index(statement)] = ast.Pass()
                return True
    return False


def _imported(statement: ast.stmt) -> set[str]:
    names = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else []
    return {alias.asname or alias.name.partition(".")[0] for alias in names}


def _drop_argument(_: ast.Module, node: ast.ClassDef) -> bool:
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[_], keywords=[]):
                call.args = []
                return True
    return False


def _flip(_: ast.Module, node: ast.ClassDef) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.If):
            inner.test = ast.UnaryOp(ast.Not(), inner.test)
            return True
    return False


def _show(title: str, refusing: Sequence[Verdict]) -> None:
    print(f"  {title}", flush=True)
    for verdict in refusing:
        for finding in verdict.findings[:6]:
            print(f"      {verdict.judge} {finding.rule}: {str(finding)[-400:]!r}", flush=True)


def _print(name: str, figures: Counter[str]) -> None:
    print(f"{name}: {figures['classes']} classes")
    for key in sorted(figures):
        if key != "classes":
            print(f"    {key:44} {figures[key]:5}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
