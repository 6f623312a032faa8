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
    green on the scaffold too passes, and the evidence says that it asks nothing yet.
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
    return _verdict(tests, place.own_test, before)


def _verdict(tests: Tests, path: str, before: Tests | None) -> Verdict:
    if tests.cause:
        return Verdict(NAME, Outcome.UNJUDGED, cause=tests.cause)
    if tests.fault:
        return Verdict(NAME, Outcome.REFUSED, (Finding("test", path, tests.fault),), evidence=tests.said)
    if tests.failures:
        return Verdict(NAME, Outcome.REFUSED, tests.failures, evidence=tests.said)
    if not tests.green:
        return Verdict(NAME, Outcome.UNJUDGED, cause=f"{path} let nothing pass: {tests.said}")
    idle = "green on the scaffold too: the test asks nothing yet" if before and before.green else ""
    return Verdict(NAME, Outcome.PASSED, evidence="; ".join(filter(None, (f"{path}: {tests.said}", idle))))


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
