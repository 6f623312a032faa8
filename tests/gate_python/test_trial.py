"""A trial of all judges at once: in the contract's order, and over as soon as one refuses."""

from __future__ import annotations

import time
from dataclasses import replace

from python_house import CLEAN, DEFECTIVE, SERVICE, SERVICE_TEST, PythonHouse

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.gate.outcome import Judged
from foundry_implementation_actor.gate.trial import try_bodies
from foundry_implementation_actor.judges.bodies import body_judges

ALL = ["syntax", "shape", "linkage", "construction", "own-test"]
HANG = "import time\n\n\ndef test_it():\n    time.sleep(600)\n"


def tried(house: PythonHouse, body: bytes) -> tuple[Judged, list[str]]:
    told: list[str] = []
    candidate = Candidate(house.place, body, (house.root / SERVICE).read_bytes())
    trial = try_bodies([house.app], [candidate], body_judges("python"), isolated, told.append)
    return trial.bodies[0], [line.partition(":")[0] for line in told]


def test_every_judge_is_heard_in_the_contracts_order(house: PythonHouse) -> None:
    judged, told = tried(house, CLEAN[1].read_bytes())
    assert [timed.verdict.judge for timed in judged.verdicts] == ALL == told


def test_the_first_refusal_ends_a_test_that_runs_beside_it(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, HANG)
    house.app = replace(house.app, test_timeout_s=600)
    started = time.monotonic()
    judged, told = tried(house, DEFECTIVE[3].read_bytes())
    assert [timed.verdict.judge for timed in judged.verdicts] == ["syntax", "shape", "linkage"] == told
    assert time.monotonic() - started < 60


def test_nothing_is_run_for_a_body_that_the_parser_refuses(house: PythonHouse) -> None:
    house.write(SERVICE_TEST, HANG)
    judged, _ = tried(house, b"class OrderService(:\n")
    assert [timed.verdict.judge for timed in judged.verdicts] == ["syntax"]
