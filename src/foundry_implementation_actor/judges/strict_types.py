"""The strict-types judge: does the body ask its language for strict types?"""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.judges.reading import verdict_on
from foundry_implementation_actor.languages.port import Language, Reading


def judge_strict_types(language: Language, _: App, candidate: Candidate, __: Run) -> Verdict:
    """Refuse a body without the declaration; unjudged where the language has none."""
    reading = language.strict_types(candidate)
    return verdict_on("strict-types", reading or Reading(cause=f"{language.NAME} has no strict types"))
