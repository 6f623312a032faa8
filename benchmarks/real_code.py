"""Land and mutate the classes of published packages through the gate, as a user has it.

    python benchmarks/real_code.py [--minutes N] [--jobs N] [--seed N] [--cache FOLDER] [--show] [PACKAGE ...]

Each package's source distribution is downloaded by name into a cache outside of the repository and unpacked
with a `gate.yaml` (see `real_packages`). For every class whose module has a test:

- A scaffold of it is written into the copy, its methods raising NotImplementedError, and the unmodified module
  is asked to land over it: in one call, or in sections where it has more than 8,192 bytes; for one class of a
  package also by `edit`. It landed when the file is what it was, byte for byte.
- Mutations of it, one of each kind at a place that the seed chooses, are asked to land by `edit`. Whether the
  class's own test can see one is found out without the gate: the mutated file is put in place and a bare
  `pytest` run on that test. Where it is red, a gate that does not refuse has missed the mutation. Where it is
  green, a refusal by the test would be a wrong one; a refusal by linkage or shape alone is counted apart.

The unmodified bodies come first, for at most three fifths of the minutes, then the mutations, both class by
class in an order that the seed chooses; what is left when the time is over is counted as not asked.
Figures go to `docs/figures/real_code.json`, those of the packages named in this call replacing what was there.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import real_mutations
from real_figures import EDIT, GREEN, RED, UNASKED, UNMODIFIED, Row, figures, table, total
from real_packages import GATE_YAML, environment, fetched, unpacked

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.edit import Pair, transmitted
from foundry_implementation_actor.domain.unit import BODY_LIMIT, Place, Target, digest
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate.ask import Ask, Assembly, Edits, Section, Stage, Whole
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.limits import limited
from foundry_implementation_actor.gate.outcome import Again, Landed, Refused
from foundry_implementation_actor.gate.staging import Staged
from foundry_implementation_actor.system.process import run_contained

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures" / "real_code.json"
_FOR_UNMODIFIED = 0.6


@dataclass(frozen=True)
class Share:
    """What one process does: a part of one package."""

    name: str
    part: int
    parts: int
    seconds: float
    asked: argparse.Namespace


@dataclass(frozen=True)
class Bench:
    """One package's copy and its gate."""

    gate: Gate
    green: dict[str, bool] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.gate.root

    def unmodified(self, place: Place, way: str = "") -> Row:
        """The module as it is, over a scaffold of the class."""
        live = self.root / place.path
        whole = live.read_bytes()
        undone = real_mutations.scaffold(whole, place.target.class_)
        way = way or ("one call" if len(whole) <= BODY_LIMIT else "sections")
        live.write_bytes(undone)
        try:
            return self._asked(place, way, whole, real_mutations.pair(undone, whole) if way == EDIT else None)
        finally:
            live.write_bytes(whole)

    def mutated(self, place: Place, kind: str, mutation: bytes) -> Row:
        """A mutation by `edit`, and what a bare run of the own test says of it."""
        live = self.root / place.path
        whole = live.read_bytes()
        try:
            row = self._asked(place, kind, mutation, real_mutations.pair(whole, mutation))
            live.write_bytes(mutation)
            seen = self._bare(place.own_test) if self._is_green(place.own_test, live, whole) else UNASKED
            return Row(row.target, kind, row.landed, row.by, row.why or f"own-test {row.test}", seen, row.seconds)
        finally:
            live.write_bytes(whole)

    def _asked(self, place: Place, what: str, content: bytes, pair: Pair | None) -> Row:
        started = time.monotonic()
        outcome = self._outcome(place.target, content, pair)
        seconds = time.monotonic() - started
        verdicts = [verdict for body in outcome.bodies for verdict in body.of(Outcome.REFUSED)]
        because = outcome.because if isinstance(outcome, Refused) else ""
        own = [one.verdict for body in outcome.bodies for one in body.verdicts if one.verdict.judge == "own-test"]
        said = f"{own[0].outcome} {own[0].cause}".strip() if own else ""
        landed = isinstance(outcome, Landed) and (self.root / place.path).read_bytes() == content
        by = verdicts[0].judge if verdicts else "" if landed else "gate"
        return Row(str(place.target), what, landed, by, because[-600:], said, seconds)

    def _outcome(self, target: Target, content: bytes, pair: Pair | None) -> Landed | Refused:
        if pair is not None:
            last = Ask(target, Edits((pair,)))
        elif len(content) <= BODY_LIMIT:
            last = Ask(target, Whole(content))
        else:
            sections = list(_sections(content))
            for number, section in enumerate(sections, 1):
                staged = self.gate.implement(Stage(target, Section(section, number == 1, number)))
                assert isinstance(staged, Staged), staged
            last = Ask(target, Assembly(size=len(content), sections=len(sections), sha256=digest(content)))
        outcome = self.gate.implement(last)
        assert not isinstance(outcome, Staged | Again), outcome
        self.gate.abandon(target)
        return outcome

    def _is_green(self, test: str, live: Path, whole: bytes) -> bool:
        """Whether a bare run of a test is green on the module as it is; without that it can see nothing."""
        if test not in self.green:
            mutation = live.read_bytes()
            live.write_bytes(whole)
            self.green[test] = self._bare(test) == GREEN
            live.write_bytes(mutation)
        return self.green[test]

    def _bare(self, test: str) -> str:
        app = self.gate.house.app
        runner = app.runner or (*app.interpreter, "-m", "pytest")
        argv = (*runner, "-q", "-x", "-p", "no:cacheprovider", test)
        done = run_contained(Command(limited(argv), app.root, {**os.environ, **app.environment}, app.test_timeout_s))
        return GREEN if done.ok else RED


def _sections(content: bytes) -> Iterator[bytes]:
    """The content in sections of whole lines, each as long as one call takes."""
    section = b""
    for line in content.splitlines(keepends=True):
        if len(section) + len(line) > BODY_LIMIT:
            yield section
            section = b""
        section += line
    yield section


def work(share: Share) -> tuple[str, list[Row]]:
    """What came of one share, and the names of the classes that have no place or no test."""
    asked = share.asked
    root = unpacked(share.name, asked.cache, asked.cache / "work" / f"{share.name}-{os.getpid()}-{share.part}")
    bench = Bench(Gate(House.open(root)))
    places, rows = _places(bench.gate.house, share.name)
    random.Random(asked.seed).shuffle(places)
    mine = places[share.part :: share.parts]
    started = time.monotonic()
    rows = rows if share.part == 0 else []
    edited = share.part != 0
    for place in mine:
        if time.monotonic() - started > share.seconds * _FOR_UNMODIFIED:
            rows.append(Row(str(place.target), "not asked", landed=False))
            continue
        rows.append(_shown(bench.unmodified(place), asked))
        if not edited and _fits_edit((root / place.path).read_bytes(), place):
            rows.append(_shown(bench.unmodified(place, EDIT), asked))
            edited = True
    for place in mine:
        if time.monotonic() - started > share.seconds:
            rows.append(Row(str(place.target), "not mutated", landed=False))
            continue
        whole, seed = (root / place.path).read_bytes(), f"{asked.seed} {share.name}"
        for kind, mutation in real_mutations.mutations(whole, place.target.class_, seed):
            rows.append(_shown(bench.mutated(place, kind, mutation), asked))
    return share.name, rows


def _fits_edit(whole: bytes, place: Place) -> bool:
    undone = real_mutations.scaffold(whole, place.target.class_)
    return undone != whole and transmitted([real_mutations.pair(undone, whole)]) <= BODY_LIMIT


def _places(house: House, name: str) -> tuple[list[Place], list[Row]]:
    """The classes whose module has a test, and a row for each that the house has no one place for."""
    places, rows = [], []
    for path in sorted((house.root / house.settings.source).rglob("*.py")):
        if not path.relative_to(house.root).is_relative_to(house.settings.tests):
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.ClassDef):
                    found = house.find(Target(name, node.name))
                    if not isinstance(found, Place):
                        rows.append(Row(f"{name}.{node.name}", "no place", landed=False, why=found.message))
                    elif not found.own_test:
                        rows.append(Row(f"{name}.{node.name}", "no test", landed=False))
                    elif found not in places:
                        places.append(found)
    return places, rows


def _shown(row: Row, asked: argparse.Namespace) -> Row:
    wrong = not row.landed if row.what in UNMODIFIED else row.landed and row.test == RED
    if asked.show or wrong:
        print(json.dumps(asdict(row)), flush=True)
    return row


def main() -> None:
    asked = _arguments()
    started = time.monotonic()
    names = asked.packages or list(GATE_YAML)
    environment(asked.cache)
    for name in names:
        fetched(name, asked.cache)
    seconds = asked.minutes * 60 / len(names)
    shares = [Share(name, part, asked.jobs, seconds, asked) for name in names for part in range(asked.jobs)]
    rows: dict[str, list[Row]] = {name: [] for name in names}
    with ProcessPoolExecutor(asked.jobs) as processes:
        for name, found in processes.map(work, shares):
            rows[name] += found
    packages = json.loads(FIGURES.read_text())["packages"] if FIGURES.exists() else {}
    for name in names:
        version = fetched(name, asked.cache).name.removeprefix(f"{name}-").removesuffix(".tar.gz")
        packages[name] = {"version": version, "seed": asked.seed, "figures": figures(rows[name])}
    packages = {name: packages[name] for name in GATE_YAML if name in packages}
    told = {"python": sys.version.split()[0], "packages": packages, "all": total(packages)}
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(told, indent=2) + "\n")
    print(table(packages))
    print(f"{time.monotonic() - started:.0f} s; figures in {FIGURES.name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", choices=[[], *GATE_YAML])
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--cache", type=Path, default=home / "foundry-real-code", help="outside of the repository")
    parser.add_argument("--minutes", type=float, default=7, help="shared by the packages; 60 is enough for all")
    parser.add_argument("--seed", type=int, default=3, help="chooses the order of classes and the places of mutations")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print every ask, not only what went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    main()
