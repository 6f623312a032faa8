"""A real registry that takes no login itself, and sends its clients to a server of tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry_implementation_actor.delivery.images.layout import read_layout
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.domain.error import ActorError, Code
from support.packed import add_image
from support.publishing import REPOSITORY, Bench
from support.registry import LoopbackRegistry, make_certificate, write_login
from support.tokens import TokenServer

PULL, PUSH = f"repository:{REPOSITORY}:pull", f"repository:{REPOSITORY}:pull,push"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return make_certificate(tmp_path / "certificate")


@pytest.fixture
def tokens(certificate: Path) -> Iterator[TokenServer]:
    with TokenServer(certificate) as tokens:
        yield tokens
    assert not tokens.errors


@pytest.fixture
def host(tmp_path: Path, certificate: Path, tokens: TokenServer) -> Iterator[str]:
    """Where the registry is."""
    with LoopbackRegistry(tmp_path / "registry", certificate=certificate, tokens=tokens.settings) as registry:
        yield registry.host


def asked_by(base: Path, host: str, certificate: Path, **login: str) -> Registry:
    folder = write_login(base / "login", host, **login)
    return Registry(host, str(folder), {"SSL_CERT_FILE": str(certificate / "cert.pem")})


def test_an_image_is_published_with_tokens_for_no_more_than_is_done(
    tmp_path: Path, host: str, certificate: Path, tokens: TokenServer
) -> None:
    login = write_login(tmp_path / "login", host)
    trusted = {"SSL_CERT_FILE": str(certificate / "cert.pem")}
    bench = Bench(tmp_path / "bench", host, tls=True, docker_config=login, environment=trusted)
    first = bench.publish()
    assert not first.was_there
    assert set(tokens.asked) == {PULL, PUSH}
    tokens.asked.clear()
    assert bench.publish() == first._replace(was_there=True)
    assert tokens.asked == [PULL]


def test_a_wrong_password_is_told_in_the_words_of_the_server_of_tokens(
    tmp_path: Path, host: str, certificate: Path, tokens: TokenServer
) -> None:
    [missing] = asked_by(tmp_path, host, certificate, password="another").lacks()
    assert missing.code is Code.UNFIT
    assert missing.where == host
    assert missing.message == "the registry refuses the login: 401 Unauthorized: no such user here"
    assert f"docker login {host}" in missing.hint
    assert not tokens.asked


def test_a_password_of_any_letters_gets_in(tmp_path: Path, certificate: Path) -> None:
    password = "pässwörd-пароль:ü"
    with (
        TokenServer(certificate, password) as tokens,
        LoopbackRegistry(tmp_path / "registry", certificate=certificate, tokens=tokens.settings) as registry,
    ):
        assert not list(asked_by(tmp_path, registry.host, certificate, password=password).lacks())
        assert len(tokens.asked) == 1


def test_a_login_without_the_right_to_push_is_told_and_nothing_is_sent(
    tmp_path: Path, host: str, certificate: Path, tokens: TokenServer
) -> None:
    tokens.rights.remove("push")
    registry = asked_by(tmp_path, host, certificate)
    assert not list(registry.lacks())
    packed = read_layout(tmp_path, add_image(tmp_path, b"layer"))
    with pytest.raises(ActorError, match=r"refuses the login: 401 .*authentication required") as raised:
        registry.send(f"{host}/{REPOSITORY}:1", packed, lambda: None)
    assert raised.value.code is Code.UNFIT
    assert registry.digest(f"{host}/{REPOSITORY}:1") == ""


def test_a_token_that_ends_while_an_image_is_sent_is_asked_for_anew(
    tmp_path: Path, host: str, certificate: Path, tokens: TokenServer
) -> None:
    registry = asked_by(tmp_path, host, certificate)
    digest = add_image(tmp_path, b"first layer", b"second layer")
    packed = read_layout(tmp_path, digest)
    tokens.life_s = 3
    main = threading.current_thread()
    begun: list[str] = []

    def until_the_first_token_has_ended() -> None:
        if threading.current_thread() is main:
            begun.append("a blob")
            if len(begun) == 2:
                while time.time() <= tokens.taken_until:  # the clock is what ends a token
                    threading.Event().wait(tokens.taken_until - time.time() + 0.01)
                tokens.life_s = 300
                tokens.asked.clear()

    registry.send(f"{host}/{REPOSITORY}:1", packed, until_the_first_token_has_ended)
    assert len(begun) == len(packed.blobs) == 3
    assert tokens.asked == [PULL, PUSH]
    assert registry.digest(f"{host}/{REPOSITORY}:1") == digest
