"""The linkage judge: does every name that the body uses lead somewhere?"""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.judges.reading import verdict_on
from foundry_implementation_actor.languages.port import Language
from foundry_implementation_actor.system.files import read_below

_TEST_LIMIT = 1024 * 1024


def judge_linkage(language: Language, app: App, candidate: Candidate, run: Run) -> Verdict:
    """Refuse names that lead nowhere and promises of a base that are broken, where the original had none."""
    path = candidate.place.own_test
    beside = candidate.beside.get(path)
    own_test = beside if beside is not None else read_below(app.root, path, _TEST_LIMIT) if path else b""
    return verdict_on("linkage", language.linkage(app, candidate, own_test or b"", run))
