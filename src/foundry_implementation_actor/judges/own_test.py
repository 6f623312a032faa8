"""The own-test judge: does the class do what its own test asks?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding, Outcome, Verdict
from foundry_implementation_actor.languages.port import Language, Tests

NAME = "own-test"


def judge_own_test(language: Language, app: App, candidate: Candidate, run: Run) -> Verdict:
    """Refuse a body under which the class's own test is red, hangs or ends early.

    A test that ran nothing, or that could not be asked, leaves the body unjudged. A test that is
    green on the scaffold too passes, and the evidence says that it asks nothing yet. That a test
    could not be asked counts only where it is so of the text that stands too.
    """
    place = candidate.place
    if place.is_test:
        return _of_test(language.own_test(app, place.path, run))
    if not place.own_test:
        return Verdict(NAME, Outcome.UNJUDGED, cause="the class has no own test")
    with ThreadPoolExecutor(1) as threads:
        scaffold = language.is_scaffold(candidate.original, place.target.class_)
        asked = threads.submit(language.own_test, app, place.own_test, run, original=True) if scaffold else None
        tests = language.own_test(app, place.own_test, run)
        before = asked.result() if asked else None
    if before is None and (tests.cause or tests.unasked) and not tests.failures:
        before = language.own_test(app, place.own_test, run, original=True)
    return _verdict(tests, place.own_test, before)


def _verdict(tests: Tests, path: str, before: Tests | None) -> Verdict:
    said = tests.said
    if tests.failures:
        return Verdict(NAME, Outcome.REFUSED, tests.failures, evidence=said)
    fault = tests.fault or (_evaded(tests, before) if before else "")
    if fault:
        return Verdict(NAME, Outcome.REFUSED, (Finding("test", path, fault),), evidence=said)
    if tests.cause:
        return Verdict(NAME, Outcome.UNJUDGED, cause=tests.cause)
    if not tests.green:
        return Verdict(NAME, Outcome.UNJUDGED, cause=f"{path} let nothing pass: {said}")
    idle = "green on the scaffold too: the test asks nothing yet" if before and before.green else ""
    return Verdict(NAME, Outcome.PASSED, evidence="; ".join(filter(None, (f"{path}: {said}", idle))))


def _evaded(tests: Tests, before: Tests) -> str:
    """What the test asked of the text that stands and does not get to ask of this body; empty when nothing.

    What is the host's fault or the test's own wish is so without the body too.
    """
    evaded = sorted(tests.unasked & before.asked)
    if evaded:
        return f"{', '.join(evaded[:5])} can be asked of the text that stands, and under this body is skipped"
    if tests.cause and not tests.unasked and not before.cause:
        return f"{tests.cause}; this is so only under this body"
    return ""


def _of_test(tests: Tests) -> Verdict:
    """A test lands without judging itself; what it says of the body that stands is told."""
    if tests.cause:
        evidence = f"could not be run: {tests.cause}"
    elif tests.green:
        evidence = f"green under the body that stands: {tests.said}"
    elif tests.fault or tests.failures:
        first = tests.fault or tests.failures[0].message
        evidence = f"red under the body that stands: {first[:500]}"
    else:
        evidence = f"lets nothing pass: {tests.said}"
    return Verdict(NAME, Outcome.UNJUDGED, cause="a test is not judged by itself", evidence=evidence)
