"""`doctor --sandbox` prints what came of every try, and ends well where the sandbox holds what it claims."""

from __future__ import annotations

import json

import pytest

from foundry_implementation_actor.cli.main import main
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.sandbox.inside.run import TRIES


@pytest.fixture(autouse=True)
def _auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX", "auto")


def test_every_try_and_every_gap_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--sandbox"]) == 0
    told = capsys.readouterr().out
    assert f"{choose('auto').name} (sessions run in it)" in told
    assert [one.what for one in TRIES.values() if one.what not in told] == []
    assert [gap.name for gap in choose("auto").gaps if f"    {gap.name}: {gap.what}" not in told] == []


def test_json_holds_each_sandbox_with_its_tries_and_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--sandbox", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["used"] == choose("auto").name
    assert told["used"] in [one["sandbox"] for one in told["sandboxes"]]
    for one in told["sandboxes"]:
        assert {each["name"] for each in one["tries"]} == set(TRIES)
        assert {gap["name"] for gap in one["gaps"]}
