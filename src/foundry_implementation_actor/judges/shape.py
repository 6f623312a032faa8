"""The shape judge: does the body declare exactly what its place says?"""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.judges.reading import verdict_on
from foundry_implementation_actor.languages.port import Language


def judge_shape(language: Language, _: App, candidate: Candidate, __: Run) -> Verdict:
    """Refuse a body that declares another class, declares it elsewhere, or drops what others may use."""
    return verdict_on("shape", language.shape(candidate))
