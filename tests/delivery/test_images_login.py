"""A registry that wants TLS and a login: what is refused, in which words, and where its password never is."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from support.place import Place, Reply, shell, write
from support.publishing import ADD_BUSYBOX, SHELL, Bench, need_buildah
from support.registry import PASSWORD, USER, LoopbackRegistry, make_certificate, write_login

HELPER = f"""\
#!/bin/sh
[ "$1" = get ] && [ "$(cat)" = HOST ] || exit 1
printf '%s' '{json.dumps({"Username": USER, "Secret": PASSWORD})}'
"""

LOOKS_AROUND = f"{SHELL}RUN env > /env; cat /proc/*/cmdline /proc/*/environ > /seen 2>&1; true\n"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    need_buildah()
    return make_certificate(tmp_path / "certificate")


@pytest.fixture
def registry(tmp_path: Path, certificate: Path) -> Iterator[LoopbackRegistry]:
    """One with TLS that wants a login."""
    with LoopbackRegistry(tmp_path / "registry", login=True, certificate=certificate) as registry:
        yield registry


@pytest.fixture
def trusted(certificate: Path) -> dict[str, str]:
    """What makes the certificate trusted."""
    return {"SSL_CERT_FILE": str(certificate / "cert.pem")}


def refused(bench: Bench) -> ActorError:
    """Why the registry cannot be published to, which both the check before a session and the push say."""
    [missing] = bench.publisher.registry.lacks()
    with pytest.raises(ActorError) as raised:
        bench.publish()
    assert str(raised.value) == str(missing)
    assert missing.code is Code.UNFIT
    return missing


def test_a_login_gets_in_and_one_login_is_not_another(
    tmp_path: Path, registry: LoopbackRegistry, trusted: dict[str, str]
) -> None:
    login = write_login(tmp_path / "login", registry.host)
    bench = Bench(tmp_path / "bench", registry.host, tls=True, docker_config=login, environment=trusted)
    assert not list(bench.publisher.lacks())
    assert registry.pull(bench.publish().ref).files["Dockerfile"]
    write_login(login, registry.host, "another")
    missing = refused(bench)
    assert "refuses the login" in missing.message
    assert f"docker login {registry.host}" in missing.hint
    write_login(login, "elsewhere.example.com")
    assert "wants a login, and there is none for it" in refused(bench).message


def test_an_image_that_others_stand_on_is_fetched_with_the_login(
    tmp_path: Path, registry: LoopbackRegistry, trusted: dict[str, str]
) -> None:
    login = write_login(tmp_path / "login", registry.host)
    bench = Bench(tmp_path / "bench", registry.host, tls=True, docker_config=login, environment=trusted)
    bench.publish("base")
    bench.add({"Dockerfile": f"FROM {bench.ref('base')}\nCOPY more /\n", "more": "x\n"})
    assert set(registry.pull(bench.publish().ref).files) == {"Dockerfile", "more"}


def test_no_login_is_told_before_a_session(tmp_path: Path, registry: LoopbackRegistry, trusted: dict[str, str]) -> None:
    with publishing(tmp_path, registry.host, trusted) as place:
        with pytest.raises(ActorError, match="the registry wants a login, and there is none for it") as raised:
            place.run(write("backend/x"))
        assert raised.value.code is Code.UNFIT
        assert not place.session_ran


def test_a_credential_helper_is_asked_for_the_login(
    tmp_path: Path, registry: LoopbackRegistry, trusted: dict[str, str]
) -> None:
    programs, login = tmp_path / "bin", tmp_path / "login"
    programs.mkdir()
    login.mkdir()
    helper = programs / "docker-credential-sesame"
    helper.write_text(HELPER.replace("HOST", registry.host))
    helper.chmod(0o755)
    (login / "config.json").write_text(json.dumps({"credHelpers": {registry.host: "sesame"}}))
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", **trusted}
    bench = Bench(tmp_path / "bench", registry.host, tls=True, docker_config=login, environment=environment)
    assert bench.publish().digest == registry.pull(bench.ref()).digest
    helper.write_text("#!/bin/sh\nexit 1\n")
    missing = refused(bench)
    assert f"docker-credential-sesame: it gave no login for {registry.host}" in str(missing)


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": []}', '{"auths": {"HOST": {"auth": "?"}}}', b"\xff"])
def test_a_login_file_that_cannot_be_read_is_named(tmp_path: Path, text: str | bytes) -> None:
    host = "127.0.0.1:9"
    file = tmp_path / "login" / "config.json"
    file.parent.mkdir()
    file.write_bytes(text if isinstance(text, bytes) else text.replace("HOST", host).encode())
    missing = refused(Bench(tmp_path / "bench", host, docker_config=file.parent))
    assert missing.where == str(file)
    assert "the registry's login cannot be read" in missing.message
    assert "mend the file or DOCKER_CONFIG" in missing.hint


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path, registry: LoopbackRegistry) -> None:
    login = write_login(tmp_path / "login", registry.host)
    missing = refused(Bench(tmp_path / "bench", registry.host, tls=True, docker_config=login))
    assert "certificate verify failed" in missing.message
    assert "SSL_CERT_FILE" in missing.hint
    assert not registry.asked()


def test_plain_http_is_spoken_only_when_it_is_asked_for(tmp_path: Path) -> None:
    need_buildah()
    with LoopbackRegistry(tmp_path / "registry") as registry:
        missing = refused(Bench(tmp_path / "bench", registry.host, tls=True))
        assert "cannot be spoken to with TLS" in missing.message
        assert "REGISTRY_TLS=off" in missing.hint


def test_a_login_is_never_sent_over_plain_http(tmp_path: Path) -> None:
    need_buildah()
    with LoopbackRegistry(tmp_path / "registry", login=True) as registry:
        login = write_login(tmp_path / "login", registry.host)
        missing = refused(Bench(tmp_path / "bench", registry.host, docker_config=login))
        assert "wants a login over plain HTTP" in missing.message
        assert {line.rpartition(" ")[2] for line in registry.asked()} == {"401"}


def publishing(base: Path, host: str, settings: dict[str, str]) -> Place:
    images = {"IMAGES": "on", "IMAGE_BUILDER": "buildah", "IMAGE_REGISTRY": f"{host}/foundry", **settings}
    return Place(base / "place", local=True, settings=images)


def watched(act: Callable[[], Reply]) -> tuple[Reply, bytes]:
    """An answer, and the arguments of every process of this host while it is found."""
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(file.read_bytes())
                except OSError:
                    continue  # it has ended

    looker = threading.Thread(target=look)
    looker.start()
    try:
        reply = act()
    finally:
        done.set()
        looker.join()
    return reply, b"\n".join(seen)


def test_the_password_is_in_no_argument_no_record_no_answer_no_image_and_no_file(
    tmp_path: Path, registry: LoopbackRegistry, trusted: dict[str, str]
) -> None:
    login = write_login(tmp_path / "login", registry.host)
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    with publishing(tmp_path, registry.host, {"DOCKER_CONFIG": str(login), **trusted}) as place:
        left: dict[Path, bytes] = {}

        def look_around(record: dict[str, Any]) -> None:
            if record.get("step") == "image-published":
                left.update((file, file.read_bytes()) for file in place.state.rglob("*") if file.is_file())

        place.on_record = look_around
        steps = (shell(ADD_BUSYBOX), write("backend/Dockerfile", LOOKS_AROUND))
        reply, arguments = watched(lambda: place.run(*steps))
        assert reply["accepted"] is True, reply
        assert b"\0bud\0" in arguments
        assert any("image-backend" in file.parts for file in left)
        image = registry.pull(reply["images"][0])
        assert image.files["env"]
        assert image.files["seen"]
        told = json.dumps([place.records, reply, image.config]).encode()
        for where in (arguments, told, *left.values(), *(content for _, content in image.files.values())):
            assert PASSWORD.encode() not in where
            assert secret not in where
