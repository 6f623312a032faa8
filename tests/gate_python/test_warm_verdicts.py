"""A warm verdict is the cold one: on every sample, and whatever changed on disk in between."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from python_house import CLEAN, DEFECTIVE, SERVICE, SERVICE_TEST, TRAPS, PythonHouse
from warm_house import differences, judged, servers, told

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.verdict import Outcome
from foundry_implementation_actor.gate.bubblewrap import Sandbox
from foundry_implementation_actor.gate.isolate import isolated, isolation_refusal
from foundry_implementation_actor.gate.warm import Warm

GOOD = CLEAN[1].read_bytes()
PRICING = "src/plugins/orders/pricing.py"


def bodies(paths: list[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture
def only_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host on which no command can be run cold."""
    assert isolation_refusal() == ""

    def refuse(_: Sandbox, command: Command, *, original: bool = False) -> Completed:
        raise AssertionError(f"cold: {command.argv}")

    monkeypatch.setattr(Sandbox, "__call__", refuse)


def test_every_defective_body_gets_the_verdict_of_a_cold_gate(house: PythonHouse, warm: Warm) -> None:
    assert differences(house, bodies(DEFECTIVE), "linkage", warm.isolated) == {}


def test_every_clean_body_gets_the_verdict_of_a_cold_gate(house: PythonHouse, warm: Warm) -> None:
    assert differences(house, bodies(CLEAN), "linkage", warm.isolated) == {}
    assert differences(house, bodies(CLEAN), "own-test", warm.isolated) == {}


@pytest.mark.parametrize("part", range(2))
def test_every_trap_of_a_test_file_gets_the_verdict_of_a_cold_gate(part: int, house: PythonHouse, warm: Warm) -> None:
    found: dict[str, tuple[str, str]] = {}
    for trap in TRAPS[part::2]:
        (house.root / SERVICE_TEST).write_bytes(trap.read_bytes())
        house.app = replace(house.app, test_timeout_s=4.0 if "hang" in trap.name else 30.0)
        found |= differences(house, {trap.name: GOOD}, "own-test", warm.isolated)
    assert {name: both for name, both in found.items() if "did not end within 4 s" not in both[0]} == {}


@pytest.mark.usefixtures("only_warm")
def test_linkage_and_test_of_a_body_need_no_cold_command(house: PythonHouse, warm: Warm) -> None:
    assert judged(house, GOOD, "linkage", warm.isolated).outcome is Outcome.PASSED
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED
    assert judged(house, DEFECTIVE[3].read_bytes(), "linkage", warm.isolated).outcome is Outcome.REFUSED


@pytest.mark.usefixtures("only_warm")
def test_a_collaborator_that_changes_on_disk_is_seen_at_the_next_call(house: PythonHouse, warm: Warm) -> None:
    body = GOOD + b"\n\nfrom plugins.orders import extra\n\nextra.more()\n"
    verdicts = []
    for text in (None, "def more() -> None: ...\n", "def less() -> None: ...\n", "def more() -> None: ...\n", None):
        if text is not None:
            house.write("src/plugins/orders/extra.py", text)
        else:
            (house.root / "src/plugins/orders/extra.py").unlink(missing_ok=True)
        verdicts.append(judged(house, body, "linkage", warm.isolated).outcome)
    refused, passed = Outcome.REFUSED, Outcome.PASSED
    assert verdicts == [refused, passed, refused, passed, refused]


def test_a_collaborator_that_changes_without_a_new_time_is_seen_too(house: PythonHouse, warm: Warm) -> None:
    body = GOOD + b"\n\nfrom plugins.orders import extra\n\nextra.more()\n"
    extra = house.write("src/plugins/orders/extra.py", "def more() -> None: ...\n")
    assert judged(house, body, "linkage", warm.isolated).outcome is Outcome.PASSED
    before = extra.stat().st_mtime_ns
    aside = house.write("aside.txt", "def less() -> None: ...\n")
    os.utime(aside, ns=(before, before))
    aside.replace(extra)
    assert extra.stat().st_mtime_ns == before
    verdict = judged(house, body, "linkage", warm.isolated)
    assert {"missing-attribute", "import-AttributeError"} <= {finding.rule for finding in verdict.findings}


@pytest.mark.usefixtures("only_warm")
def test_a_landing_between_two_calls_is_seen(house: PythonHouse, warm: Warm) -> None:
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED
    (house.root / SERVICE).write_bytes(GOOD)
    broken = GOOD.replace(b"def cancel", b"def revoke")
    assert judged(house, broken, "own-test", warm.isolated).outcome is Outcome.REFUSED
    assert (house.root / SERVICE).read_bytes() == GOOD
    assert judged(house, GOOD, "own-test", warm.isolated).outcome is Outcome.PASSED


@pytest.mark.usefixtures("only_warm")
def test_companions_of_a_batch_are_seen_where_they_will_stand(house: PythonHouse, warm: Warm) -> None:
    body = GOOD + b"\n\nfrom plugins.orders.pricing import added\n\nadded()\n"
    pricing = (house.root / PRICING).read_bytes() + b"\n\ndef added() -> None: ...\n"
    assert judged(house, body, "linkage", warm.isolated).outcome is Outcome.REFUSED
    assert judged(house, body, "linkage", warm.isolated, {PRICING: pricing}).outcome is Outcome.PASSED
    assert judged(house, body, "own-test", warm.isolated, {PRICING: pricing}).outcome is Outcome.PASSED
    assert judged(house, body, "linkage", warm.isolated).outcome is Outcome.REFUSED


@pytest.mark.usefixtures("only_warm")
def test_two_calls_at_once_each_get_their_own_verdict(house: PythonHouse, warm: Warm) -> None:
    bad = GOOD.replace(b"return True", b"return None")
    with ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(judged, house, body, judge, warm.isolated)
            for judge in ("own-test", "linkage")
            for body in (GOOD, bad, GOOD, bad)
        ]
        outcomes = [one.result().outcome for one in asked]
    passed, refused = Outcome.PASSED, Outcome.REFUSED
    assert outcomes == [passed, refused, passed, refused, passed, passed, passed, passed]


def test_an_app_whose_module_hides_one_that_is_loaded_already_is_judged_cold(house: PythonHouse, warm: Warm) -> None:
    house.write("src/iniconfig.py", "class IniConfig: ...\n\nOWN = 1\n")
    body = GOOD + b"\n\nimport json\n\nassert json.OWN == 1\n"
    house.write("src/json.py", "from importlib import import_module\nOWN = 1\n")
    assert told(judged(house, body, "linkage", warm.isolated)) == told(judged(house, body, "linkage", isolated))
    assert told(judged(house, body, "own-test", warm.isolated)) == told(judged(house, body, "own-test", isolated))


def test_another_environment_of_the_app_gets_another_server(house: PythonHouse, warm: Warm) -> None:
    body = GOOD + b"\n\nimport os\n\nassert os.environ['APP_ENV'] == 'two'\n"
    house.app = replace(house.app, environment={**house.app.environment, "APP_ENV": "one"})
    assert judged(house, body, "own-test", warm.isolated).outcome is Outcome.REFUSED
    first = servers()["forks"]
    house.app = replace(house.app, environment={**house.app.environment, "APP_ENV": "two"})
    assert judged(house, body, "own-test", warm.isolated).outcome is Outcome.PASSED
    assert not set(first) & set(servers()["forks"])
