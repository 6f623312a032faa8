"""Linkage of a Python body: ty on its text beside an import of it, each against the original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages import python_ty
from foundry_implementation_actor.languages.port import Reading
from foundry_implementation_actor.languages.python_collaborators import untyped
from foundry_implementation_actor.languages.python_filters import Question, Source, stands
from foundry_implementation_actor.languages.python_place import import_roots, interpreter_version, ty_argv
from foundry_implementation_actor.languages.python_probe import Probed, probe
from foundry_implementation_actor.languages.python_tree import parse
from foundry_implementation_actor.languages.python_ty import TyFinding

# What a test may not get wrong; the rest it may ask of a body that is still to be written.
_TEST_RULES = frozenset({"import-not-found", "unresolved-reference"})


@dataclass(frozen=True)
class _Part:
    """One analyser's word: what it found that the original does not have, or why it has none."""

    findings: tuple[Finding, ...] = ()
    cause: str = ""


def linkage(app: App, candidate: Candidate, own_test: bytes, run: Run) -> Reading:
    """What does not link in a body that did in the original; see `port.Language`."""
    look = _Look(app, candidate, own_test, run)
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(look.ty)
        first = Probed() if candidate.place.is_test else look.probe()
        found = asked.result()
        imported = threads.submit(look.imported, first)
        text = _Part(cause=found) if isinstance(found, str) else look.text(found, first, threads)
        parts = (text, imported.result())
    findings = tuple(dict.fromkeys(finding for part in parts for finding in part.findings))
    cause = "; ".join(part.cause for part in parts if part.cause)
    reading = Reading(findings, cause)
    return reading if findings or cause or candidate.place.is_test else untyped(candidate)


class _Look:
    """One candidate under the two analysers."""

    def __init__(self, app: App, candidate: Candidate, own_test: bytes, run: Run) -> None:
        self._app = app
        self._candidate = candidate
        self._place = candidate.place
        self._run = run
        texts = {self._place.path: candidate.content}
        if own_test and self._place.own_test:
            texts[self._place.own_test] = own_test
        trees = {path: (text, parse(text)) for path, text in texts.items()}
        self._sources = {
            path: Source(text.splitlines(), tree, self._place.module.rpartition(".")[0])
            for path, (text, tree) in trees.items()
            if tree is not None
        }

    def ty(self, *, original: bool = False) -> list[TyFinding] | str:
        argv = ty_argv(self._app)
        if isinstance(argv, str):
            return argv
        version = interpreter_version(self._app)
        command = python_ty.command(self._app, argv, self._folders(), version, list(self._sources))
        return python_ty.read(self._run(command, original=original))

    def _folders(self) -> list[Path]:
        roots = import_roots(self._app, self._place)
        if not self._place.is_test:
            return roots
        # pytest lets a test import its neighbours.
        return [*roots, self._app.root, self._app.root / PurePosixPath(self._place.path).parent]

    def probe(self, questions: Sequence[Question] = (), *, original: bool = False) -> Probed:
        place = self._place
        if place.is_test:
            # A test is imported by its runner; here only its questions are answered.
            place = Place(Target(place.target.plugin, "object"), place.path, "builtins", is_test=True)
        command, read = probe(self._app, place, self._folders(), questions)
        return read(self._run(command, original=original))

    def imported(self, first: Probed) -> _Part:
        """What the import says, less what it says of the original too."""
        if first.absent:
            return _Part(cause=first.absent)
        if not first.findings and not first.wrong:
            return _Part(cause=first.broke)
        before = self.probe(original=True)
        if first.wrong:
            if before.wrong or before.stopped:
                return _Part(cause=f"{first.wrong}; so does the original")
            return _Part((Finding("import-ends", self._place.path, first.wrong),))
        known = Counter((one.rule, one.message) for one in before.findings)
        new = [one for one in first.findings if not known[one.rule, one.message]]
        if before.stopped or before.wrong:
            # What the rest of the module had before is not known then.
            new = [one for one in new if first.stopped or one.message.startswith(self._place.target.class_)]
        if first.stopped and not new:
            return _Part(cause=f"it cannot be imported here, nor can the original: {first.findings[0].message}")
        return _Part(tuple(new))

    def text(self, found: list[TyFinding], first: Probed, threads: ThreadPoolExecutor) -> _Part:
        """What ty says, less what it says of the original too and what only looks wrong."""
        asked = {one: self._stands(one, first) for one in found}
        asked = {one: answer for one, answer in asked.items() if answer is not False}
        if not asked:
            return _Part()
        questions = [answer for answer in asked.values() if isinstance(answer, Question)]
        earlier = threads.submit(self.ty, original=True)
        true = self._true(questions, first)
        before = earlier.result()
        if isinstance(before, str):
            return _Part(cause=f"on the original, {before}")
        left = python_ty.added([one for one in found if one in asked], before)
        return _Part(tuple(_told(one) for one in left if _holds(asked[one], true)))

    def _stands(self, finding: TyFinding, first: Probed) -> bool | Question:
        source = self._sources.get(finding.path)
        if source is None or (self._place.is_test and finding.rule not in _TEST_RULES):
            return False
        return stands(finding, source, first.overrides)

    def _true(self, questions: Sequence[Question], first: Probed) -> frozenset[tuple[str, str, str]] | None:
        if not questions:
            return frozenset()
        if first.stopped or first.wrong or first.absent:
            return None
        return self.probe(questions).true


def _holds(answer: bool | Question, true: frozenset[tuple[str, str, str]] | None) -> bool:
    """Whether a finding stands, given what is true in the running program (None: nobody could ask it)."""
    if isinstance(answer, bool):
        return answer
    if true is None:
        return not answer.stands_when
    return (answer[:3] in true) is answer.stands_when


def _told(finding: TyFinding) -> Finding:
    return Finding(finding.rule, f"{finding.path}:{finding.line}", finding.message)
