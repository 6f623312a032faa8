"""Sections wait outside the source trees, each whole, until their body is finished or abandoned."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Target, digest
from foundry_implementation_actor.gate import ledger
from foundry_implementation_actor.gate.staging import MOST_BYTES, MOST_SECTIONS, Declared, Staged, Staging

ORDER = Target("orders", "Order")
OTHER = Target("orders", "Orders")
UNSAID = Declared()


def test_sections_are_joined_byte_for_byte_also_when_a_character_is_cut(tmp_path: Path) -> None:
    staging, whole = Staging(tmp_path), "caf\u00e9 \u65e5\u672c\r\n".encode()
    staging.start(ORDER, whole[:4])
    staging.append(ORDER, whole[4:8], UNSAID)
    staged = staging.append(ORDER, whole[8:], UNSAID)
    assert isinstance(staged, Staged)
    assert (staged.sections, staged.size, staged.digest) == (3, len(whole), digest(whole))
    assert staging.assembled(ORDER) == whole


def test_what_is_staged_survives_a_restart_and_is_listed(tmp_path: Path) -> None:
    Staging(tmp_path).start(ORDER, b"one")
    Staging(tmp_path).start(OTHER, b"two")
    assert [(staged.target, staged.size) for staged in Staging(tmp_path).all()] == [(ORDER, 3), (OTHER, 3)]
    assert Staging(tmp_path).abandon(ORDER)
    assert not Staging(tmp_path).abandon(ORDER)
    assert [staged.target for staged in Staging(tmp_path).all()] == [OTHER]


@pytest.mark.parametrize("damage", ["a lost section", "a section that is a folder", "no section left"])
def test_a_damaged_body_is_named_and_hides_no_other(tmp_path: Path, damage: str) -> None:
    staging, folder = Staging(tmp_path), tmp_path / ".foundry/staging" / str(ORDER)
    staging.start(ORDER, b"one")
    if damage != "no section left":
        staging.append(ORDER, b"two", UNSAID)
    staging.start(OTHER, b"three")
    (folder / "000001.part").unlink()
    if damage == "a section that is a folder":
        (folder / "000001.part").mkdir()
    hurt, whole = staging.all()
    assert (hurt.target, bool(hurt.damage), whole.target, whole.damage, whole.size) == (ORDER, True, OTHER, "", 5)
    assert staging.status(OTHER) == whole
    staging.start(ORDER, b"anew")
    assert [staged.damage for staged in staging.all()] == ["", ""]


def test_nothing_of_it_can_be_imported_or_committed(tmp_path: Path) -> None:
    Staging(tmp_path).start(ORDER, b"class Order: ...")
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".part", "", ".gitignore"}
    assert (tmp_path / ".foundry/.gitignore").read_text() == "*\n"


def test_a_state_folder_that_was_there_keeps_its_own_rules_for_git(tmp_path: Path) -> None:
    (tmp_path / ".foundry").mkdir()
    Staging(tmp_path).start(ORDER, b"x")
    assert not (tmp_path / ".foundry/.gitignore").exists()


def test_a_start_drops_what_was_open(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"one")
    staging.append(ORDER, b"two", UNSAID)
    staging.start(ORDER, b"three")
    assert staging.assembled(ORDER) == b"three"


def test_a_section_that_is_sent_twice_is_taken_once_when_it_is_numbered(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"one")
    first = staging.append(ORDER, b"two", Declared(section=2))
    assert staging.append(ORDER, b"two", Declared(section=2)) == first
    assert staging.append(ORDER, b"two", Declared(offset=3)) == first
    assert staging.assembled(ORDER) == b"onetwo"


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (Declared(section=2), "section 2 is here already, with other content"),
        (Declared(section=4), "section 3 is missing"),
        (Declared(offset=2), "the next section begins at 6"),
        (Declared(offset=60), "the next section begins at 6"),
    ],
)
def test_a_section_that_does_not_fit_is_refused_and_nothing_is_lost(
    tmp_path: Path, declared: Declared, said: str
) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"one")
    staging.append(ORDER, b"two", UNSAID)
    refused = staging.append(ORDER, b"thr", declared)
    assert isinstance(refused, str)
    assert said in refused
    assert staging.assembled(ORDER) == b"onetwo"


def test_an_append_without_a_start_is_refused(tmp_path: Path) -> None:
    refused = Staging(tmp_path).append(ORDER, b"x", UNSAID)
    assert isinstance(refused, str)
    assert "mode=start" in refused


def test_a_lost_section_is_noticed(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"one")
    staging.append(ORDER, b"two", UNSAID)
    (tmp_path / ".foundry/staging/orders.Order/000001.part").unlink()
    with pytest.raises(ActorError) as caught:
        staging.assembled(ORDER)
    assert caught.value.code is Code.BAD_REQUEST
    assert staging.abandon(ORDER)


def test_sections_are_bounded_in_number(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"x")
    folder = tmp_path / ".foundry/staging/orders.Order"
    for number in range(2, MOST_SECTIONS + 1):
        (folder / f"{number:06}.part").write_bytes(b"x")
    refused = staging.append(ORDER, b"x", UNSAID)
    assert isinstance(refused, str)
    assert str(MOST_SECTIONS) in refused


def test_a_body_is_bounded_in_bytes(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, bytes(MOST_BYTES - 5))
    assert isinstance(staging.append(ORDER, b"x" * 5, UNSAID), Staged)
    refused = staging.append(ORDER, b"x", UNSAID)
    assert isinstance(refused, str)
    assert f"{MOST_BYTES:,} are the most" in refused
    assert len(staging.assembled(ORDER) or b"") == MOST_BYTES


@pytest.mark.skipif(os.getuid() != 0, reason="only root can use the gate for somebody else")
def test_what_root_stages_in_an_app_is_its_owners(tmp_path: Path) -> None:
    os.chown(tmp_path, 4711, 4712)
    Staging(tmp_path).start(ORDER, b"one")
    Staging(tmp_path).append(ORDER, b"two", UNSAID)
    ledger.append(tmp_path, {"when": "now"})
    places = list((tmp_path / ".foundry").rglob("*"))
    assert len(places) > 6
    assert {(place.stat().st_uid, place.stat().st_gid) for place in places} == {(4711, 4712)}


def test_users_of_one_group_can_share_an_app_whose_umask_says_so(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        Staging(tmp_path).start(ORDER, b"one")
        ledger.append(tmp_path, {"when": "now"})
    finally:
        os.umask(before)
    assert all(place.stat().st_mode & stat.S_IWGRP for place in (tmp_path / ".foundry").rglob("*"))


def test_a_body_that_grew_meanwhile_is_not_dropped_with_what_landed(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"one")
    staging.taken(ORDER, b"another")
    assert staging.assembled(ORDER) == b"one"
    staging.taken(ORDER, b"one")
    assert staging.assembled(ORDER) is None


def test_appends_at_once_are_all_taken_whole(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.start(ORDER, b"")
    pieces = [bytes([65 + at]) * 50 for at in range(8)]
    writers = [threading.Thread(target=staging.append, args=(ORDER, piece, UNSAID)) for piece in pieces]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    whole = staging.assembled(ORDER)
    assert whole is not None
    assert sorted(whole[at : at + 50] for at in range(0, len(whole), 50)) == pieces


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=6), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_any_sections_with_any_one_of_them_sent_again_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], again: int
) -> None:
    staging = Staging(tmp_path_factory.mktemp("app"))
    staging.start(ORDER, pieces[0])
    for number, piece in enumerate(pieces[1:], 2):
        staging.append(ORDER, piece, Declared(section=number))
    repeated = again % len(pieces)
    staging.append(ORDER, pieces[repeated], Declared(section=repeated + 1))
    assert staging.assembled(ORDER) == b"".join(pieces)
