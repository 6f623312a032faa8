"""What lies in `.foundry` may have come with the app: nothing there makes the gate reach outside, wait, or break."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Target, digest
from foundry_implementation_actor.gate import landing, ledger, scaffold
from foundry_implementation_actor.gate.finish import Finishes
from foundry_implementation_actor.gate.staging import MOST_BYTES, Declared, Staging
from support.landing import NEW, candidates, lay, live

ORDER = Target("orders", "Order")
MINE = b"mine"
ENTRY = {"path": "src/a.py", "aside": ".0.0.landing", "kept": ".0.0.kept", "before": "", "after": ""}
DEEP = "[" * 20_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An app beside files that are none of its business."""
    for name in ("mine", "other", ".x.making"):
        (tmp_path / name).write_bytes(MINE)
    (tmp_path / "empty").mkdir()
    return lay(tmp_path / "app")


def outside(root: Path) -> list[str]:
    return sorted(path.name for path in root.parent.iterdir() if path != root)


def forge(root: Path, name: str, said: Any) -> Path:
    record = root / ".foundry" / name
    record.parent.mkdir(parents=True)
    record.write_text(said if isinstance(said, str) else json.dumps(said))
    return record


def refused(act: Callable[[], object], record: Path) -> None:
    with pytest.raises(ActorError) as caught:
        act()
    assert (caught.value.code, caught.value.where) == (Code.UNFIT, str(record))
    assert "is no record of a" in caught.value.message
    assert "delete it" in caught.value.hint


LANDINGS = {
    "a path above": [{**ENTRY, "path": "../mine"}],
    "an absolute path": [{**ENTRY, "path": "/etc/hostname"}],
    "no path": [{**ENTRY, "path": ""}],
    "a path with a NUL": [{**ENTRY, "path": "a\0b"}],
    "an aside elsewhere": [{**ENTRY, "aside": "../../mine"}],
    "an old body elsewhere": [{**ENTRY, "kept": "../../other", "after": digest(MINE)}],
    "an aside that is the file": [{**ENTRY, "aside": "a.py"}],
    "another kind": [{**ENTRY, "path": 5}],
    "no list": 5,
}


@pytest.mark.parametrize("which", LANDINGS)
@pytest.mark.parametrize("landed", [False, True])
def test_a_record_that_no_landing_wrote_is_not_obeyed(root: Path, which: str, *, landed: bool) -> None:
    before = (outside(root), live(root))
    record = forge(root, "landing/0.json", {"landed": landed, "files": LANDINGS[which]})
    refused(lambda: landing.recover(root), record)
    refused(lambda: landing.alone(root).__enter__(), record)
    assert (outside(root), live(root)) == before


@pytest.mark.parametrize("said", ["[]", "x", "{}", DEEP, '{"landed": NaN, "files": []}'])
def test_what_is_no_record_of_a_landing_is_named(root: Path, said: str) -> None:
    refused(lambda: landing.recover(root), forge(root, "landing/0.json", said))


def test_a_record_that_is_a_folder_a_link_or_a_pipe_is_named(root: Path) -> None:
    record = root / ".foundry/landing/0.json"
    record.mkdir(parents=True)
    refused(lambda: landing.recover(root), record)
    record.rmdir()
    record.symlink_to(root.parent / "mine")
    refused(lambda: landing.recover(root), record)
    record.unlink()
    os.mkfifo(record)
    refused(lambda: landing.recover(root), record)


def test_a_folder_where_a_half_written_record_would_be_stops_no_landing(root: Path) -> None:
    (root / ".foundry/landing/.0.json.new/in").mkdir(parents=True)
    with landing.alone(root):
        assert landing.land(root, candidates()) is None
    assert live(root) == NEW


MAKES: dict[str, Any] = {
    "a file above": {"files": {"../mine": digest(MINE)}, "folders": []},
    "a file above that is to be": {"files": {"../x": ""}, "folders": []},
    "a folder above": {"files": {}, "folders": ["../empty"]},
    "an absolute folder": {"files": {}, "folders": ["/srv"]},
    "no path": {"files": {"": ""}, "folders": []},
    "another kind": {"files": {"a": 5}, "folders": [5]},
    "lists": {"files": [], "folders": []},
    "nothing": {},
    "no object": [],
    "no JSON": "x",
    "too deep": DEEP,
}


@pytest.mark.parametrize("which", MAKES)
def test_a_record_that_no_make_wrote_is_not_obeyed(root: Path, which: str) -> None:
    before = outside(root)
    refused(lambda: scaffold.recover(root), forge(root, "make/record.json", MAKES[which]))
    assert outside(root) == before


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_section_that_is_no_file_of_its_own_is_never_read(root: Path, kind: str) -> None:
    staging, section = Staging(root), root / ".foundry/staging/orders.Order/000001.part"
    staging.start(ORDER, b"one")
    section.unlink()
    section.symlink_to(root.parent / "mine") if kind == "link" else os.mkfifo(section)
    for act in (lambda: staging.assembled(ORDER), lambda: staging.append(ORDER, b"two", Declared())):
        with pytest.raises(ActorError) as caught:
            act()
        assert "abandon it" in caught.value.hint
    assert [bool(staged.damage) for staged in staging.all()] == [True]
    assert staging.abandon(ORDER)


def test_a_section_is_read_no_further_than_a_body_may_go(root: Path) -> None:
    staging = Staging(root)
    staging.start(ORDER, b"one")
    with (root / ".foundry/staging/orders.Order/000002.part").open("wb") as file:
        file.truncate(1 << 40)
    assert isinstance(staging.append(ORDER, b"two", Declared()), str)
    assert len(staging.assembled(ORDER) or b"") <= 2 * MOST_BYTES


def test_only_names_that_a_class_can_have_count_as_staged(root: Path) -> None:
    Staging(root).start(ORDER, b"one")
    for odd in (b"orders.\xff", b"orders.\x1b[31mA\nB", b"orders.a.b", b"1.2"):
        os.mkdir(os.fsencode(root / ".foundry/staging") + b"/" + odd)  # noqa: PTH102 - a name that is no text
    assert [str(staged.target) for staged in Staging(root).all()] == ["orders.Order"]


@pytest.mark.parametrize("answer", [5, {}, {"ok": "yes"}, None, DEEP])
def test_an_answer_that_no_finish_gave_is_not_given_again(root: Path, answer: object) -> None:
    said = answer if answer == DEEP else {"token": "a", "digest": "b", "landed": True, "answer": answer}
    forge(root, "finish/orders.Order.json", said)
    assert Finishes(root).last(ORDER) is None


def test_a_line_of_the_ledger_that_no_attempt_wrote_is_passed_over(root: Path) -> None:
    odd = ['{"bodies": null}', '{"bodies": 5}', '{"bodies": ["x"]}', "[1]", DEEP, "9" * 5_000, '{"bodies": NaN}']
    forge(root, "ledger.jsonl", "\n".join([*odd, '{"act": "edit", "bodies": [{}]}', ""]))
    assert list(ledger.entries(root)) == [{"act": "edit", "bodies": [{}]}]


@pytest.mark.parametrize("what", ["a lock that is a folder", "a folder that is a file", "a folder that is a link"])
def test_what_stands_where_the_gate_writes_is_to_be_taken_away(root: Path, what: str) -> None:
    folder = root / ".foundry/staging"
    place = folder / "lock" if what == "a lock that is a folder" else folder
    place.parent.mkdir(parents=True)
    if what == "a folder that is a link":
        place.symlink_to(root.parent)
    else:
        place.write_text("") if what == "a folder that is a file" else place.mkdir()
    with pytest.raises(ActorError) as caught:
        Staging(root).start(ORDER, b"x")
    assert (caught.value.code, caught.value.where) == (Code.UNFIT, str(place))
    assert caught.value.hint == "nothing was changed; take that away"
