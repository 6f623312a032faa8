"""The model as a session reaches it: at the actor, with a word of its run that only the actor can exchange."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.model import Model, ModelDoor
from foundry_implementation_actor.egress.proxy import EgressProxy
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.system.journal import Journal
from support.egress import CERTIFICATE, PATIENCE_S, Origin, SiteProxy

LOGIN = "the-real-login-of-the-model"
BODY = b'{"model": "any", "max_tokens": 1}'
BOTH = [("Authorization", "Bearer "), ("x-api-key", "")]


class Session:
    """What a session can do: ask the door, with whatever it likes."""

    def __init__(self, door: ModelDoor, port: int) -> None:
        self.door, self.port = door, port

    def ask(self, path: str = "/v1/messages?beta=true", **headers: str) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST", path, body=BODY, headers=given)
            response = connection.getresponse()
            body = response.read().decode()
            return response.status, json.loads(body) if response.status == 200 else body
        finally:
            connection.close()


@contextmanager
def door_to(address: str, **site: str) -> Iterator[Session]:
    door = ModelDoor(Model(address, "ANTHROPIC_API_KEY", LOGIN))
    with EgressProxy(Allowed(), Journal(), Upstream.read(site), model=door) as proxy:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        proxy.serve(listener)
        yield Session(door, port)


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    """A service with TLS whose certificate this host trusts."""
    (tmp_path / "trusted.pem").write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted.pem"))
    with Origin(tmp_path) as origin:
        yield origin


@pytest.mark.parametrize(("header", "scheme"), BOTH)
def test_the_word_of_the_run_is_exchanged_for_the_login_on_the_way_out(header: str, scheme: str) -> None:
    with Origin() as model, door_to(f"http://127.0.0.1:{model.server_port}/gateway/") as session:
        status, asked = session.ask(**{header: f"{scheme}{session.door.token}", "anthropic-beta": "oauth"})
    assert (status, asked["path"]) == (200, "/gateway/v1/messages?beta=true")
    assert asked["headers"][header.lower()] == f"{scheme}{LOGIN}"
    assert asked["headers"]["anthropic-beta"] == "oauth"
    assert session.door.token not in str(asked)


@pytest.mark.parametrize(
    "headers", [{}, {"x_api_key": "guess"}, {"Authorization": f"Bearer {LOGIN}"}, {"x_api_key": "", "Cookie": "a"}]
)
def test_a_request_without_the_word_of_this_run_gets_no_login(headers: dict[str, str]) -> None:
    with Origin() as model, door_to(f"http://127.0.0.1:{model.server_port}") as session:
        status, said = session.ask(**headers)
    assert (status, model.asked) == (401, [])
    assert LOGIN not in said


def test_the_door_of_one_session_does_not_take_the_word_of_another() -> None:
    with Origin() as model:
        address = f"http://127.0.0.1:{model.server_port}"
        with door_to(address) as one, door_to(address) as other:
            assert one.ask(x_api_key=other.door.token)[0] == 401
    assert model.asked == []


def test_the_service_is_reached_by_tls_and_told_its_own_name(secure: Origin) -> None:
    with door_to(f"https://localhost:{secure.server_port}") as session:
        status, asked = session.ask(x_api_key=session.door.token)
    assert (status, asked["headers"]["host"]) == (200, f"localhost:{secure.server_port}")


def test_a_service_whose_certificate_is_not_trusted_gets_no_login(tmp_path: Path) -> None:
    with Origin(tmp_path) as model, door_to(f"https://localhost:{model.server_port}") as session:
        status, said = session.ask(x_api_key=session.door.token)
    assert (status, model.asked) == (502, [])
    assert "cannot be reached by TLS" in said


def test_a_site_with_a_proxy_gets_only_a_tunnel_to_the_service(secure: Origin) -> None:
    with SiteProxy() as site, door_to(f"https://localhost:{secure.server_port}", HTTPS_PROXY=site.address) as session:
        status, asked = session.ask(x_api_key=session.door.token)
        assert site.asked == [f"CONNECT localhost:{secure.server_port} HTTP/1.1"]
    assert (status, asked["headers"]["x-api-key"]) == (200, LOGIN)


def test_the_login_is_in_no_text_of_the_values_that_hold_it() -> None:
    door = ModelDoor(Model("https://model.example", "ANTHROPIC_API_KEY", LOGIN))
    assert LOGIN not in repr(door)
    assert door.token not in repr(door)
