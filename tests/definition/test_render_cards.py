import stat
from pathlib import Path

import pytest
from papeete_actor_synchronous_messaging import card

from foundry_implementation_actor.definition import conformance
from foundry_implementation_actor.definition.cards import CARDS, DATA, DOORS, IDENTITY, cards_path
from foundry_implementation_actor.definition.render import render_cards
from foundry_implementation_actor.domain.capability import Capability, Component
from foundry_implementation_actor.domain.error import ActorError

CAPABILITY = Capability(
    "claude-code", "ACME.PARTS.CAP.SUP.007.WID", "acme-lab/wid", "acme-lab/governance",
    (Component("backend", "back: 'end\"é/", "backend"), Component("stub", "stub/", "stub")),
)  # fmt: skip


def test_the_four_cards_are_written_and_conform(tmp_path: Path) -> None:
    assert render_cards(CAPABILITY, tmp_path) == [tmp_path / name for name in CARDS]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(CARDS)
    assert conformance.check(tmp_path).ok


def test_the_identity_is_the_uses_own(tmp_path: Path) -> None:
    render_cards(CAPABILITY, tmp_path)
    rendered = card.load(tmp_path)
    assert rendered.name == "ACME.PARTS.CAP.SUP.007.WID-implementation"
    assert "acme-lab/wid" in rendered.description
    assert "back: 'end\"é/, stub/" in rendered.description


def test_the_other_three_are_byte_for_byte_under_a_banner_that_names_the_version(tmp_path: Path) -> None:
    render_cards(CAPABILITY, tmp_path)
    for name in set(CARDS) - {IDENTITY}:
        first, second, rest = (tmp_path / name).read_bytes().split(b"\n", 2)
        assert first.startswith(b"# Rendered by foundry-implementation-actor ")
        assert second.startswith(b"# Do not edit")
        assert rest == (cards_path() / name).read_bytes()


def test_rendering_again_replaces_old_cards(tmp_path: Path) -> None:
    render_cards(CAPABILITY, tmp_path)
    once = {name: (tmp_path / name).read_bytes() for name in CARDS}
    (tmp_path / DOORS).write_text("old")
    render_cards(CAPABILITY, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in CARDS} == once


def test_a_link_in_a_cards_place_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "use"
    folder.mkdir()
    (folder / DATA).symlink_to(outside)
    render_cards(CAPABILITY, folder)
    assert outside.read_text() == "mine"
    assert not (folder / DATA).is_symlink()


def test_a_rendered_card_can_be_read_by_another_user(tmp_path: Path) -> None:
    render_cards(CAPABILITY, tmp_path)
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) & 0o044 == 0o044 for name in CARDS)


def test_a_folder_that_is_linked_to_is_written_in(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    render_cards(CAPABILITY, tmp_path / "link")
    assert (tmp_path / "real" / DATA).is_file()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="cannot be written \\(No such file or directory\\)") as refused:
        render_cards(CAPABILITY, tmp_path / "none")
    assert refused.value.where == str(tmp_path / "none" / IDENTITY)


def test_a_directory_in_a_cards_place_is_named(tmp_path: Path) -> None:
    (tmp_path / IDENTITY).mkdir()
    with pytest.raises(ActorError, match="cannot be written \\(Is a directory\\)"):
        render_cards(CAPABILITY, tmp_path)
