"""The PHP judges on the samples: every defective body refused for its reason, no clean one, no trap green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from php_house import GREETER, GREETER_TEST, SAMPLES, fault, needs_php, php_house

from foundry_implementation_actor.domain.verdict import Outcome

pytestmark = needs_php

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text())["samples"]
CANDIDATES = SAMPLES / "candidates"
DEFECTIVE = {
    "d01_unknown_class": ("linkage", "no class App\\Plugins\\Demo\\Services\\Sentence"),
    "d02_unknown_use_in_type": ("linkage", "no class App\\Nope\\Mailer"),
    "d03_unknown_function": ("linkage", "no function finalize()"),
    "d04_invented_method": ("linkage", "PhraseBook has no method lookup()"),
    "d05_invented_property": ("linkage", "Phrase has no property $body"),
    "d06_too_few_args": ("linkage", "Phrase() is not given its parameter $text"),
    "d07_too_many_args": ("linkage", "languages() takes at most 0 arguments, 1 given"),
    "d08_unknown_named": ("linkage", "Phrase() has no parameter $body"),
    "d09_abstract_missing": ("linkage", "contains 1 abstract method"),
    "d10_fewer_params": ("linkage", "must be compatible"),
    "d11_param_renamed": ("linkage", "names it $name"),
    "d12_return_mismatch": ("linkage", "must be compatible"),
    "d13_invented_interface": ("linkage", 'Interface "App\\Core\\Bootable" not found'),
    "d14_self_method": ("linkage", "GreeterService has no method languages()"),
    "d15_wrong_namespace": ("shape", "in the namespace App\\Plugins\\Demo\\Service;"),
    "d16_syntax": ("syntax", "unexpected token"),
}
CLEAN = sorted(path.stem for path in CANDIDATES.glob("c*.php"))
TRAPS = {
    "Pass": (Outcome.PASSED, "1 passed"),
    "Fail": (Outcome.REFUSED, "Failed asserting that false is true"),
    "Error": (Outcome.REFUSED, "undefined function nope()"),
    "Exit0": (Outcome.REFUSED, "ended with code 0 before PHPUnit could report"),
    "Skip": (Outcome.UNJUDGED, "1 skipped or incomplete"),
    "Incomplete": (Outcome.UNJUDGED, "1 skipped or incomplete"),
    "Risky": (Outcome.UNJUDGED, "1 risky"),
    "None": (Outcome.UNJUDGED, "1 with a warning"),
    "Syntax": (Outcome.UNJUDGED, "does not parse"),
}


def test_every_sample_is_judged_here() -> None:
    assert sorted(DEFECTIVE) == sorted(path.stem for path in CANDIDATES.glob("d*.php"))
    assert (FIGURES["defective"], FIGURES["refused"], FIGURES["missed"]) == (len(DEFECTIVE), len(DEFECTIVE), [])
    assert (FIGURES["clean"], FIGURES["wrongly_refused"]) == (len(CLEAN), [])
    assert sorted(TRAPS) == sorted(path.stem.removesuffix("Test") for path in SAMPLES.glob("phpunit_traps/*.php"))


@pytest.mark.parametrize("name", DEFECTIVE)
def test_a_defective_body_is_refused_by_the_judge_that_can_see_it(name: str, tmp_path: Path) -> None:
    house = php_house(tmp_path / "app")
    judge, reason = DEFECTIVE[name]
    said = house.judge(house.candidate((CANDIDATES / f"{name}.php").read_bytes()))
    assert list(said)[-1] == judge
    assert reason in fault(said[judge])


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_body_passes_every_judge_up_to_linkage(name: str, tmp_path: Path) -> None:
    house = php_house(tmp_path / "app")
    asked = house.candidate((CANDIDATES / f"{name}.php").read_bytes())
    said = house.judge(asked, "syntax", "strict-types", "shape", "linkage")
    assert {judge: verdict.outcome for judge, verdict in said.items()} == dict.fromkeys(said, Outcome.PASSED), said
    assert len(said) == 4


@pytest.mark.parametrize("name", TRAPS)
def test_a_runner_trap_is_never_green(name: str, tmp_path: Path) -> None:
    house = php_house(tmp_path / "app")
    path = house.write(
        f"tests/Plugins/Demo/{name}Test.php", (SAMPLES / f"phpunit_traps/{name}Test.php").read_bytes()
    )  # fmt: skip
    asked = house.candidate((house.root / GREETER).read_bytes(), own_test=path)
    verdict = house.one(asked, "own-test")
    outcome, reason = TRAPS[name]
    told = f"{verdict.cause} {verdict.evidence} {' '.join(map(str, verdict.findings))}"
    assert (verdict.outcome, reason in told) == (outcome, True), verdict


def test_the_sample_house_lands_its_own_body_with_every_judge(tmp_path: Path) -> None:
    house = php_house(tmp_path / "app")
    said = house.judge(house.candidate((house.root / GREETER).read_bytes(), own_test=GREETER_TEST))
    outcomes = {name: verdict.outcome for name, verdict in said.items()}
    assert outcomes.pop("construction") is Outcome.UNJUDGED
    assert outcomes == dict.fromkeys(outcomes, Outcome.PASSED), said
    assert "3 passed" in said["own-test"].evidence
