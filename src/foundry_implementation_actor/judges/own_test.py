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

    A test that is red is a refusal, whatever it is red for: a service that the host lacks, too. A test
    that ran nothing, or that could not be asked, leaves the body unjudged; so does one whose runner
    breaks over the app's own configuration. That counts only where it is so of the text that stands
    too. A test that is green on the scaffold passes, and the evidence says that it asks nothing yet.
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
    if before is None and (tests.cause or tests.unasked or tests.broken) and not tests.failures:
        before = language.own_test(app, place.own_test, run, original=True)
    fault = _brought(tests, before, candidate, scaffold=scaffold) if before else ""
    return _verdict(tests, place.own_test, before, fault)


def _verdict(tests: Tests, path: str, before: Tests | None, brought: str) -> Verdict:
    said = tests.said
    if tests.failures:
        return Verdict(
            NAME, Outcome.REFUSED, tests.failures, evidence="; ".join(filter(None, (said, _as_before(tests, before))))
        )
    fault = tests.fault or brought
    if fault:
        return Verdict(NAME, Outcome.REFUSED, (Finding("test", path, fault),), evidence=said)
    cause = tests.cause or _first(tests)
    if cause:
        return Verdict(NAME, Outcome.UNJUDGED, cause=cause, evidence="so it is of the text that stands too")
    if not tests.green:
        return Verdict(NAME, Outcome.UNJUDGED, cause=f"{path} let nothing pass: {said}")
    idle = "green on the scaffold too: the test asks nothing yet" if before and before.green else ""
    return Verdict(NAME, Outcome.PASSED, evidence="; ".join(filter(None, (f"{path}: {said}", idle))))


def _brought(tests: Tests, before: Tests, candidate: Candidate, *, scaffold: bool) -> str:
    """What keeps the test from being asked, or breaks it, only since this body; empty when nothing.

    What is the host's fault or the test's own wish is so without the body too. What broke under a
    scaffold and in this body's own code may be for two reasons, and the second is the body's.
    """
    evaded = sorted(tests.unasked & before.asked)
    if evaded:
        return f"{', '.join(evaded[:5])} can be asked of the text that stands, and under this body is skipped"
    new = sorted(tests.broken.keys() - before.broken.keys())
    if new:
        return f"{new[0]}: {tests.broken[new[0]]}; this is so only under this body"
    if tests.cause and not tests.unasked and not before.cause:
        return f"{tests.cause}; this is so only under this body"
    own = {candidate.place.path, *candidate.beside} & tests.through
    if own and (scaffold or tests.cause != before.cause):
        return f"{tests.cause}; {', '.join(sorted(own))} had a part in it"
    return ""


def _as_before(tests: Tests, before: Tests | None) -> str:
    """How many failures end in the words in which the test failed without the body; empty when none does."""
    known = {_ending(failure) for failure in before.failures} if before else set()
    same = sum(_ending(failure) in known for failure in tests.failures)
    return f"{same} of the failures end in the same words under the text that stands" if same else ""


def _ending(failure: Finding) -> tuple[str, str]:
    return failure.path, failure.message.rpartition("\n")[2]


def _first(tests: Tests) -> str:
    """How the first of the tests broke that broke by themselves."""
    node = min(tests.broken, default="")
    return node and f"{tests.broken[node]} ({node})"


def _of_test(tests: Tests) -> Verdict:
    """A test lands without judging itself; what it says of the body that stands is told."""
    cause = tests.cause or _first(tests)
    if cause and not tests.failures:
        evidence = f"could not be run: {cause}"
    elif tests.green:
        evidence = f"green under the body that stands: {tests.said}"
    elif tests.fault or tests.failures:
        first = tests.fault or tests.failures[0].message
        evidence = f"red under the body that stands: {first[:500]}"
    else:
        evidence = f"lets nothing pass: {tests.said}"
    return Verdict(NAME, Outcome.UNJUDGED, cause="a test is not judged by itself", evidence=evidence)
