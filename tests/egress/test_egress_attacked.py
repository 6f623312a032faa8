"""A flood takes nothing that the actor needs, and a list of hosts that cannot be read is not repeated."""

from __future__ import annotations

import contextlib

import pytest

from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.proxy import Limits
from support.egress import Way


def test_a_flood_of_connections_is_dropped_without_a_word() -> None:
    with Way("a.example", Limits(connections=2)) as way, contextlib.ExitStack() as held:
        for _ in range(4):
            held.enter_context(way.connection())
        assert way.say(b"") == b""


@pytest.mark.parametrize("item", ["user:password@host", "https://user:password@host/", "x" * 60_000, "a/" * 30_000])
def test_a_list_of_hosts_that_cannot_be_read_shows_no_login_and_no_flood(item: str) -> None:
    with pytest.raises(ValueError, match="^holds ") as raised:
        Allowed.read(item)
    assert "password" not in str(raised.value)
    assert len(str(raised.value)) < 300
