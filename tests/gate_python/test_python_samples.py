"""The sample bodies and the traps for test runners: each is judged as its author meant it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from python_house import CLEAN, DEFECTIVE, SERVICE_TEST, TRAPS, PythonHouse

from foundry_implementation_actor.domain.verdict import Outcome

# Of the rules that a defect breaks, the one that its name promises.
REASONS = {
    "d01": "import-ModuleNotFoundError",
    "d02": "missing-module-member",
    "d03": "unresolved-reference",
    "d04": "missing-attribute",
    "d05": "missing-attribute",
    "d06": "missing-argument",
    "d07": "too-many-positional-arguments",
    "d08": "unknown-argument",
    "d09": "abstract-left",
    "d10": "abstract-class-instantiation",
    "d11": "override-narrows",
    "d12": "override-narrows",
    "d13": "override-narrows",
    "d14": "incompatible-method-override",
    "d15": "invalid-argument-type",
    "d16": "import-ImportError",
    "d17": "unresolved-reference",
    "d18": "missing-attribute",
    "d19": "missing-attribute",
    "d20": "missing-attribute",
}

IDLE = "asks nothing yet"
TRAP_VERDICTS = {
    "test_assertless": (Outcome.PASSED, IDLE),
    "test_collect_err": (Outcome.UNJUDGED, "nope_mod"),
    "test_exit0": (Outcome.REFUSED, "ended with 0 before its report"),
    "test_fail": (Outcome.REFUSED, "assert 1 == 2"),
    "test_fixture_err": (Outcome.REFUSED, "RuntimeError"),
    "test_hang": (Outcome.REFUSED, "did not end within"),
    "test_importorskip": (Outcome.UNJUDGED, "let nothing pass"),
    "test_mock_assert": (Outcome.PASSED, IDLE),
    "test_module_skip": (Outcome.UNJUDGED, "let nothing pass"),
    "test_none": (Outcome.UNJUDGED, "no test"),
    "test_pass": (Outcome.PASSED, IDLE),
    "test_pytestexit": (Outcome.REFUSED, "1 of 2"),
    "test_raises": (Outcome.PASSED, IDLE),
    "test_skip_only": (Outcome.UNJUDGED, "1 skipped"),
    "test_swallow": (Outcome.PASSED, IDLE),
    "test_sysexit": (Outcome.REFUSED, ""),
    "test_tautology": (Outcome.PASSED, IDLE),
    "test_xfail_only": (Outcome.UNJUDGED, "1 xfailed"),
    "test_xpass": (Outcome.UNJUDGED, "1 xpassed"),
}


def stem(path: Path) -> str:
    return path.name.removesuffix(".py.txt")


@pytest.mark.parametrize("body", DEFECTIVE, ids=stem)
def test_a_defective_body_is_refused_by_linkage_for_its_own_defect(body: Path, house: PythonHouse) -> None:
    verdict = house.judge("linkage", body.read_bytes())
    assert verdict.outcome is Outcome.REFUSED
    assert REASONS[stem(body)[:3]] in {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("body", CLEAN, ids=stem)
def test_a_clean_body_is_refused_by_nobody(body: Path, house: PythonHouse) -> None:
    content = body.read_bytes()
    verdicts = [house.judge(judge, content) for judge in ("syntax", "shape", "linkage", "own-test")]
    assert not [finding for verdict in verdicts for finding in verdict.findings]
    unjudged = [verdict.judge for verdict in verdicts if verdict.outcome is Outcome.UNJUDGED]
    assert unjudged == (["linkage"] if stem(body) == "c01_untyped" else [])


def test_a_body_whose_collaborators_have_no_type_is_unjudged_and_says_so(house: PythonHouse) -> None:
    verdict = house.judge("linkage", CLEAN[0].read_bytes())
    assert verdict.outcome is Outcome.UNJUDGED
    assert verdict.cause == "prices, repo: no type, so what is called on them was not judged"


@pytest.mark.parametrize("trap", TRAPS, ids=stem)
def test_no_trap_of_a_test_file_passes_for_a_judged_body(trap: Path, house: PythonHouse) -> None:
    (house.root / SERVICE_TEST).write_bytes(trap.read_bytes())
    house.app = replace(house.app, test_timeout_s=6.0 if stem(trap) == "test_hang" else 30.0)
    verdict = house.judge("own-test", CLEAN[1].read_bytes())
    outcome, said = TRAP_VERDICTS[stem(trap)]
    everything = " ".join([verdict.cause, verdict.evidence, *map(str, verdict.findings)])
    assert verdict.outcome is outcome, everything
    assert said in everything
