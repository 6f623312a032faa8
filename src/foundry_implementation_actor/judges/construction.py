"""The construction judge: does the app's own container build the class?"""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding, Outcome, Verdict
from foundry_implementation_actor.languages.port import Language

NAME = "construction"
_TOLD = 1_000


def judge_construction(language: Language, app: App, candidate: Candidate, run: Run) -> Verdict:
    """Refuse a body that the app's construction command can no longer build.

    The command gets the class's full name as its last argument, or where `{class}` stands. What it
    cannot build on the original either is not this body's fault and stays unjudged.
    """
    if not app.construct:
        return Verdict(NAME, Outcome.UNJUDGED, cause="the app names no construction command")
    if candidate.place.is_test:
        return Verdict(NAME, Outcome.UNJUDGED, cause="a container builds no test")
    command = _command(language, app, candidate)
    built = run(command)
    if built.ok:
        return Verdict(NAME, Outcome.PASSED)
    if built.ended is Ended.NOT_FOUND:
        return Verdict(NAME, Outcome.UNJUDGED, cause=f"the construction command {command.argv[0]} is not there")
    if not run(command, original=True).ok:
        return Verdict(NAME, Outcome.UNJUDGED, cause=f"the original cannot be built either: {_told(built)}")
    return Verdict(NAME, Outcome.REFUSED, (Finding("construction", candidate.place.path, _told(built)),))


def _command(language: Language, app: App, candidate: Candidate) -> Command:
    name = language.class_name(candidate.place)
    argv = tuple(word.replace("{class}", name) for word in app.construct)
    if argv == app.construct:
        argv = (*argv, name)
    return Command(argv, app.root, language.command_environment(app), app.probe_timeout_s)


def _told(built: Completed) -> str:
    if built.ended is not Ended.EXIT:
        return f"building it was ended: {built.ended}"
    return f"building it ended with {built.code}: {(built.errors or built.text.strip())[-_TOLD:]}"
