"""The ledger keeps every attempt, within bounds, and a torn line costs nothing but itself."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from foundry_implementation_actor.gate import ledger


def test_every_attempt_is_kept_in_order(tmp_path: Path) -> None:
    for number in range(3):
        assert ledger.append(tmp_path, {"number": number}) == ""
    assert [entry["number"] for entry in ledger.entries(tmp_path)] == [0, 1, 2]


def test_an_app_without_a_ledger_has_no_entries(tmp_path: Path) -> None:
    assert list(ledger.entries(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    ledger.append(tmp_path, {"number": 1})
    with (tmp_path / ".foundry/ledger.jsonl").open("ab") as file:
        file.write(b'{"number": 2, "verd')
    ledger.append(tmp_path, {"number": 3})
    assert [entry["number"] for entry in ledger.entries(tmp_path)] == [1, 3]


def test_it_never_grows_without_bound_and_keeps_one_old_file(tmp_path: Path) -> None:
    for number in range(200):
        ledger.append(tmp_path, {"number": number, "words": "x" * 50}, limit=2_000)
    files = sorted((tmp_path / ".foundry").glob("*.jsonl"))
    assert [file.name for file in files] == ["ledger.1.jsonl", "ledger.jsonl"]
    assert all(file.stat().st_size <= 2_000 for file in files)
    numbers = [entry["number"] for entry in ledger.entries(tmp_path)]
    assert numbers == list(range(numbers[0], 200))


def test_a_huge_attempt_is_one_bounded_line(tmp_path: Path) -> None:
    ledger.append(tmp_path, {"event": "x", "findings": ["\u65e5" * 100_000] * 20})
    [line] = (tmp_path / ".foundry/ledger.jsonl").read_bytes().splitlines()
    assert len(line) <= 65_536
    json.loads(line)


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [threading.Thread(target=ledger.append, args=(tmp_path, {"number": at})) for at in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(entry["number"] for entry in ledger.entries(tmp_path)) == list(range(20))


def test_a_ledger_that_cannot_be_written_says_so_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / ".foundry").write_text("a file")
    assert "could not be written" in ledger.append(tmp_path, {"number": 1})
    assert list(ledger.entries(tmp_path)) == []
