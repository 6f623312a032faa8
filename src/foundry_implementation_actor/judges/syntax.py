"""The syntax judge: does the app's own interpreter parse the body?"""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.judges.reading import verdict_on
from foundry_implementation_actor.languages.port import Language


def judge_syntax(language: Language, app: App, candidate: Candidate, run: Run) -> Verdict:
    """Refuse what the language's own parser refuses."""
    return verdict_on("syntax", language.syntax(app, candidate, run))
