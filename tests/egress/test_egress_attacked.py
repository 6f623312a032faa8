"""What a session or an operator's slip got out of the proxy once: descriptors, and logins."""

from __future__ import annotations

import contextlib

import pytest

from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.http import RefusedError, read_request
from foundry_implementation_actor.egress.model import Model, ModelDoor
from foundry_implementation_actor.egress.proxy import Limits
from support.egress import Way


def test_a_flood_of_connections_is_dropped_without_a_word() -> None:
    with Way("a.example", Limits(connections=2)) as way, contextlib.ExitStack() as held:
        for _ in range(4):
            held.enter_context(way.connection())
        assert way.say(b"") == b""


@pytest.mark.parametrize("item", ["user:password@host", "https://user:password@host/", "x" * 60_000, "a/" * 30_000])
def test_a_list_of_hosts_that_cannot_be_read_shows_no_login_and_no_flood(item: str) -> None:
    with pytest.raises(ValueError, match=r"^holds ") as raised:
        Allowed.read(item)
    assert "password" not in str(raised.value)
    assert len(str(raised.value)) < 300


DOOR = ModelDoor(Model("https://gateway.example/model", "ANTHROPIC_API_KEY", "the-real-login"))


def to_the_model(line: str) -> bytes:
    """The head that goes out for a request with the word of the run."""
    lines = (line.encode(), f"X-Api-Key: {DOOR.token}".encode())
    return DOOR.logged_in(read_request(lines, DOOR.model.target)).head()


@pytest.mark.parametrize(
    "path",
    ["/../echo", "/v1/..", "/%2e%2E/echo", "/v1/.%2e%2fecho", "/..\\echo", "/a/..;/echo", "/./x", "/..?a", "/..#a"],
)
def test_no_path_leads_the_login_out_of_the_address_of_the_model(path: str) -> None:
    for begins in ("POST ", "GET /v1/models", "POST /v1/messages"):
        with pytest.raises(RefusedError, match="sessions reach the model at"):
            to_the_model(f"{begins}{path} HTTP/1.1")


def test_no_service_is_asked_to_repeat_the_login() -> None:
    with pytest.raises(RefusedError, match="sessions reach the model at"):
        to_the_model("TRACE /v1/messages HTTP/1.1")


@pytest.mark.parametrize(
    "asked",
    [
        "POST /v1/messages?a=/../b", "POST /v1/messages/count_tokens?beta=true", "GET /v1/models?limit=20",
        "GET /v1/models/claude-opus-4-5@20251101",
    ],
)  # fmt: skip
def test_messages_and_what_is_free_is_asked_for_as_it_is(asked: str) -> None:
    method, path = asked.split()
    head = to_the_model(f"{asked} HTTP/1.1")
    assert head.startswith(f"{method} /model{path} HTTP/1.1\r\nHost: gateway.example\r\n".encode())
    assert b"\r\nX-Api-Key: the-real-login\r\n" in head


@pytest.mark.parametrize(
    "asked",
    [
        "POST /v1/messages/batches", "GET /v1/messages/batches/x/results", "POST /v1/files", "GET /v1/messages",
        "POST /v1/complete", "PUT /v1/messages", "POST /v1//messages", "POST /v1/messages/", "POST /v1/mess%61ges",
        "POST /v1/messages#a", "POST /V1/messages", "POST /v1/models", "GET /v1/models/a/b", "GET /", "POST /",
    ],
)  # fmt: skip
def test_what_else_the_service_has_is_refused(asked: str) -> None:
    with pytest.raises(RefusedError, match="sessions reach the model at") as refused:
        to_the_model(f"{asked} HTTP/1.1")
    assert refused.value.status == 403
