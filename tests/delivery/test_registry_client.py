"""What the registry's client does with answers that a real registry cannot be made to give, and by which way it asks.

A server of these tests stands in for the registry throughout.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from foundry_implementation_actor.delivery.images.layout import Packed, read_layout
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.domain.error import ActorError, Code
from support.egress import SiteProxy
from support.packed import add_image, digest_of
from support.registry import PASSWORD, USER, make_certificate, write_login
from support.stand_in_registry import Said, StandIn

LAYER = b"a layer, as good as any other"
UPLOADS = "/v2/some/where/blobs/uploads"
MANIFEST = b'{"schemaVersion": 2}'
HTML = Said(200, {"Content-Type": "text/html"}, b"<html>welcome</html>")
LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
WANTS_LOGIN = Said(401, {"WWW-Authenticate": 'Basic realm="images"'})
PATIENCE_S = 0.4
LARGE = 16_000_000  # more than the system takes off a sender's hands


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with StandIn() as registry:
        yield registry
    assert not registry.errors


@pytest.fixture
def other() -> Iterator[StandIn]:
    """Another host than the registry."""
    with StandIn() as other:
        yield other
    assert not other.errors


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return make_certificate(tmp_path / "certificate")


@pytest.fixture
def secure(certificate: Path) -> Iterator[StandIn]:
    """A registry with TLS."""
    with StandIn(certificate) as secure:
        yield secure
    assert not secure.errors


@pytest.fixture
def trusting(tmp_path: Path, secure: StandIn, certificate: Path) -> Registry:
    """Who asks the registry with TLS, and has a login for it."""
    login = write_login(tmp_path / "login", secure.host)
    return Registry(secure.host, str(login), {"SSL_CERT_FILE": str(certificate / "cert.pem")})


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    return read_layout(tmp_path / "layout", add_image(tmp_path / "layout", LAYER))


def never() -> None:
    """Let it go on."""


def plain(registry: StandIn, **environment: str) -> Registry:
    """Who asks a registry in plain HTTP."""
    return Registry(registry.host, "", environment, tls=False, patience_s=PATIENCE_S)


def ref(registry: StandIn) -> str:
    return f"{registry.host}/some/where:1"


def send(registry: StandIn, packed: Packed, asker: Registry | None = None) -> None:
    (asker or plain(registry)).send(ref(registry), packed, never)


def refused(act: Callable[[], object]) -> str:
    """In which words something is refused."""
    with pytest.raises(ActorError) as raised:
        act()
    assert raised.value.code is Code.UNFIT
    return raised.value.message


def puts(registry: StandIn) -> list[str]:
    return [line.removeprefix("PUT ") for line in registry.lines if line.startswith("PUT ")]


@pytest.mark.parametrize(
    ("location", "path", "query"),
    [
        (f"{UPLOADS}/7", f"{UPLOADS}/7", ""),
        ("7", f"{UPLOADS}/7", ""),
        ("REGISTRY/elsewhere/7", "/elsewhere/7", ""),
        ("/up?_state=a%2Bb%3D&empty=&sig=x/y+z", "/up", "_state=a%2Bb%3D&empty=&sig=x/y+z&"),
    ],
)
def test_a_blob_goes_where_the_registry_says(
    registry: StandIn, packed: Packed, location: str, path: str, query: str
) -> None:
    registry.answers["POST upload"] = [Said(202, {"Location": location.replace("REGISTRY", registry.address)})]
    send(registry, packed)
    digests = [blob.digest.replace(":", "%3A") for blob in packed.blobs]
    assert puts(registry) == [*(f"{path}?{query}digest={digest}" for digest in digests), "/v2/some/where/manifests/1"]
    assert registry.stored[1:] == [LAYER, packed.manifest.encode()]


def test_a_login_does_not_go_to_another_host_that_blobs_do(
    certificate: Path, secure: StandIn, trusting: Registry, packed: Packed
) -> None:
    secure.answers["HEAD blob"] = [WANTS_LOGIN, None]
    with StandIn(certificate) as other:
        secure.answers["POST upload"] = [Said(202, {"Location": f"{other.address}/up"})]
        send(secure, packed, trusting)
    assert len(other.stored) == 2
    assert all("authorization" not in question.headers for question in other.asked)
    assert [question.headers.get("authorization") for question in secure.asked] == [None, *[LOGIN] * 5]


def test_another_host_that_asks_for_the_login_does_not_get_it(
    certificate: Path, secure: StandIn, trusting: Registry, packed: Packed
) -> None:
    with StandIn(certificate) as other:
        secure.answers["POST upload"] = [Said(202, {"Location": f"{other.address}/up"})]
        realm = f'Bearer realm="{other.address}/token",service="x"'
        other.answers["PUT else"] = [Said(401, {"WWW-Authenticate": realm})]
        assert "refuses the login: 401" in refused(lambda: send(secure, packed, trusting))
    assert len(other.asked) == 1
    assert "authorization" not in other.asked[0].headers


def test_the_registry_is_the_same_however_its_name_is_spelled(registry: StandIn, packed: Packed) -> None:
    registry.answers["HEAD blob"] = [Said(401, {"WWW-Authenticate": f'Bearer realm="{registry.address}/token"'}), None]
    registry.answers["GET else"] = [Said(200, {}, b'{"token": "one"}')]
    registry.answers["POST upload"] = [Said(202, {"Location": f"http://LocalHost:{registry.server_port}/up"})]
    asker = Registry(f"localhost:{registry.server_port}", "", {}, tls=False)
    asker.send(f"{asker.address}/some/where:1", packed, never)
    sent = [question.headers.get("authorization") for question in registry.asked if question.line.startswith("PUT")]
    assert sent == ["Bearer one"] * 3


@pytest.mark.parametrize("how", ["Location", "redirect"])
def test_an_image_is_not_sent_on_without_tls(
    secure: StandIn, other: StandIn, trusting: Registry, packed: Packed, how: str
) -> None:
    if how == "Location":
        secure.answers["POST upload"] = [Said(202, {"Location": f"{other.address}/up"})]
    else:
        secure.answers["PUT upload"] = [Said(307, {"Location": f"{other.address}/up"})]
    said = refused(lambda: send(secure, packed, trusting))
    assert said == (
        "the registry wants an image sent to 127.0.0.1 without TLS, where everybody on the way could read it"
    )
    assert not other.asked


def test_a_digest_that_is_not_told_is_counted(registry: StandIn) -> None:
    registry.answers["HEAD manifest"] = [Said(200), Said(200, {"Docker-Content-Digest": "md5:1"})]
    registry.answers["GET manifest"] = [Said(200, {}, MANIFEST)]
    assert plain(registry).digest(ref(registry)) == digest_of(MANIFEST)
    assert plain(registry).digest(ref(registry)) == digest_of(MANIFEST)


def test_a_blob_that_lies_on_another_host_is_not_sent_again(registry: StandIn, other: StandIn, packed: Packed) -> None:
    registry.answers["HEAD blob"] = [Said(307, {"Location": f"{other.address}/stored"})]
    sizes = [blob.path.read_bytes() for blob in packed.blobs]
    other.answers["HEAD else"] = [Said(200, {}, content) for content in sizes]
    send(registry, packed)
    assert puts(registry) == ["/v2/some/where/manifests/1"]
    assert other.lines == ["HEAD /stored"] * 2


def test_what_is_sent_on_to_another_host_arrives_whole(registry: StandIn, other: StandIn, packed: Packed) -> None:
    registry.answers["PUT upload"] = [Said(307, {"Location": f"{other.address}/up"})]
    send(registry, packed)
    assert other.stored == [blob.path.read_bytes() for blob in packed.blobs]


def test_redirects_without_end_are_refused(registry: StandIn) -> None:
    registry.answers["HEAD manifest"] = [Said(302, {"Location": "/v2/some/where/manifests/1"})]
    assert "answers 302 Found" in refused(lambda: plain(registry).digest(ref(registry)))
    assert len(registry.asked) < 10


def test_what_is_written_is_not_taken_for_read_where_a_redirect_says_so(registry: StandIn, packed: Packed) -> None:
    registry.answers["PUT manifest"] = [Said(302, {"Location": "/welcome"})]
    assert "answers 302 Found" in refused(lambda: send(registry, packed))
    assert "GET /welcome" not in registry.lines


def test_a_blob_for_which_a_new_token_is_wanted_is_sent_again_whole(registry: StandIn, packed: Packed) -> None:
    wanted = Said(401, {"WWW-Authenticate": f'Bearer realm="{registry.address}/token",scope="a,b"'})
    registry.answers["PUT upload"] = [wanted, None]
    registry.answers["GET else"] = [Said(200, {}, b'{"access_token": "one"}')]
    send(registry, packed)
    contents = [blob.path.read_bytes() for blob in packed.blobs]
    sent = [question for question in registry.asked if question.line.startswith(f"PUT {UPLOADS}")]
    assert [question.body for question in sent] == [contents[0], *contents]
    assert [question.headers.get("authorization") for question in sent] == [None, "Bearer one", "Bearer one"]
    assert "GET /token?scope=a%2Cb" in registry.lines


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"token": null}', b"<html>", b'{"token": "a\\nb"}', b"[" * 100_000])
def test_an_answer_without_a_token_is_refused(registry: StandIn, answer: bytes) -> None:
    registry.answers["HEAD manifest"] = [Said(401, {"WWW-Authenticate": f'Bearer realm="{registry.address}/token"'})]
    registry.answers["GET else"] = [Said(200, {}, answer)]
    assert "does not answer as one: " in refused(lambda: plain(registry).digest(ref(registry)))


@pytest.mark.parametrize("challenge", ["", "Bearer", 'Bearer realm="', "Bearer realm=", "Negotiate", "Basic ,,=,"])
def test_a_401_that_asks_for_nothing_known_is_refused(registry: StandIn, challenge: str) -> None:
    registry.answers["HEAD manifest"] = [Said(401, {"WWW-Authenticate": challenge})]
    said = refused(lambda: plain(registry).digest(ref(registry)))
    assert "wants a login, and there is none for it" in said or "does not answer as one: " in said


def test_a_login_is_sent_to_no_realm_without_tls(secure: StandIn, other: StandIn, trusting: Registry) -> None:
    secure.answers["HEAD manifest"] = [Said(401, {"WWW-Authenticate": f'Bearer realm="{other.address}/token"'})]
    said = refused(lambda: trusting.digest(ref(secure)))
    assert "wants its login sent to 127.0.0.1 without TLS" in said
    assert not other.asked


def test_a_realm_on_another_host_gets_the_login_and_the_registry_the_token(
    certificate: Path, secure: StandIn, trusting: Registry
) -> None:
    """As the protocol has it: the hub of Docker has its realm on a host of its own."""
    with StandIn(certificate) as other:
        challenge = f'Bearer realm="{other.address}/token",service="images"'
        secure.answers["HEAD manifest"] = [Said(401, {"WWW-Authenticate": challenge}), None]
        other.answers["GET else"] = [Said(200, {}, b'{"token": "one"}')]
        assert trusting.digest(ref(secure)) == ""
    assert [(question.line, question.headers["authorization"]) for question in other.asked] == [
        ("GET /token?service=images", LOGIN)
    ]
    assert [question.headers.get("authorization") for question in secure.asked] == [None, "Bearer one"]


def test_what_a_registry_says_of_its_refusal_is_told_and_cut(registry: StandIn, packed: Packed) -> None:
    registry.answers["PUT manifest"] = [
        Said(413, {}, b'{"errors": [{"code": "SIZE", "message": "no room for you"}]}'),
        Said(500, {}, b'{"errors": [{"message": "' + b"x" * 10_000 + b'"}]}'),
        Said(500, {}, b'{"errors": "none"}'),
    ]
    assert "413 Request Entity Too Large: no room for you" in refused(lambda: send(registry, packed))
    assert len(refused(lambda: send(registry, packed))) < 400
    assert refused(lambda: send(registry, packed)).endswith("answers 500 Internal Server Error")


def test_a_page_is_not_taken_for_an_image_or_a_blob(registry: StandIn, packed: Packed) -> None:
    for asked in ("HEAD manifest", "GET manifest", "HEAD blob"):
        registry.answers[asked] = [HTML]
    assert "what it has there is no image" in refused(lambda: plain(registry).digest(ref(registry)))
    send(registry, packed)
    assert registry.stored == [*(blob.path.read_bytes() for blob in packed.blobs), packed.manifest.encode()]
    registry.answers["POST upload"] = [HTML]
    assert "does not say where to upload to" in refused(lambda: send(registry, packed))


def test_a_blob_is_not_there_when_the_registry_names_another(registry: StandIn, packed: Packed) -> None:
    named = {"Docker-Content-Digest": digest_of(b"another")}
    registry.answers["HEAD blob"] = [Said(200, named, blob.path.read_bytes()) for blob in packed.blobs]
    send(registry, packed)
    assert len(registry.stored) == 3


def says_nothing(handler: BaseHTTPRequestHandler) -> None:
    """Wait for the test's end."""
    handler.server.closing.wait(30)  # type: ignore[attr-defined]  # StandIn's


def says_without_end(head: bytes, again: bytes, pause_s: float) -> Callable[[BaseHTTPRequestHandler], None]:
    def say(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(head)
        while not handler.server.closing.wait(pause_s):  # type: ignore[attr-defined]  # StandIn's
            handler.wfile.write(again)

    return say


OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "nothing": says_nothing,
    "a status that drips": says_without_end(b"HTTP/1.1 20", b"0", 0.05),
    "a header that drips": says_without_end(OK + b"X-Long: ", b"x", 0.05),
    "headers": says_without_end(OK, b"X-Another: one\r\n", 0.0),
    "a body that drips": says_without_end(OK + b"Content-Length: 100000\r\n\r\n", b"x", 0.05),
    "a body to the end that drips": says_without_end(OK + b"Connection: close\r\n\r\n", b"x", 0.05),
    "a body": says_without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 0x8000 + b"\r\n", 0.0),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_ended(registry: StandIn, what: str) -> None:
    registry.answers["HEAD manifest"] = [Said(200)]
    registry.answers["GET manifest"] = [ENDLESS[what]]
    started = time.monotonic()
    assert "the registry does not answer as one: " in refused(lambda: plain(registry).digest(ref(registry)))
    assert time.monotonic() - started < PATIENCE_S + 2


def test_an_answer_that_is_too_long_is_not_read_to_its_end(registry: StandIn) -> None:
    registry.answers["HEAD manifest"] = [Said(200)]
    registry.answers["GET manifest"] = [ENDLESS["a body"]]
    asker = Registry(registry.host, "", {}, tls=False)
    assert "its answer is longer than 4,194,304 bytes" in refused(lambda: asker.digest(ref(registry)))


@pytest.mark.parametrize("what", ["nothing", "a header that drips"])
def test_a_push_ends_where_an_answer_does_not(registry: StandIn, packed: Packed, what: str) -> None:
    registry.answers["PUT manifest"] = [ENDLESS[what]]
    started = time.monotonic()
    assert "the registry does not answer as one: " in refused(lambda: send(registry, packed))
    assert time.monotonic() - started < 2 * PATIENCE_S + 3
    assert len([line for line in registry.lines if "PUT /v2/some/where/manifests" in line]) == 2


def takes_nothing(handler: BaseHTTPRequestHandler, begun: threading.Event) -> None:
    begun.set()
    says_nothing(handler)


def takes_all(handler: BaseHTTPRequestHandler, begun: threading.Event) -> None:
    handler.rfile.read(LARGE)
    begun.set()
    says_nothing(handler)


def drips(handler: BaseHTTPRequestHandler, begun: threading.Event) -> None:
    handler.rfile.read(LARGE)
    begun.set()
    says_without_end(OK + b"X-Long: ", b"x", 0.05)(handler)


@pytest.mark.parametrize("secured", [False, True])
@pytest.mark.parametrize("how", [takes_nothing, takes_all, drips])
def test_a_stop_ends_the_sending_of_a_large_blob_at_once(
    tmp_path: Path, secure: StandIn, trusting: Registry, registry: StandIn, secured: bool, how: Callable[..., None]
) -> None:
    place = secure if secured else registry
    packed = read_layout(tmp_path, add_image(tmp_path, bytes(LARGE)))
    begun = threading.Event()
    place.answers["PUT upload"] = [None, lambda handler: how(handler, begun)]
    stopped: list[float] = []

    def halt() -> None:
        if begun.is_set():
            stopped.append(time.monotonic())
            raise ActorError(Code.INTERRUPTED, "the actor is stopping")

    with pytest.raises(ActorError) as raised:
        (trusting if secured else plain(registry)).send(ref(place), packed, halt)
    assert raised.value.code is Code.INTERRUPTED
    assert time.monotonic() - stopped[0] < 1
    assert len(stopped) == 1
    assert len(place.stored) == 1


def test_a_large_blob_has_more_time_than_any_answer(tmp_path: Path, registry: StandIn) -> None:
    packed = read_layout(tmp_path, add_image(tmp_path, bytes(LARGE)))
    started = time.monotonic()
    enough = threading.Event()

    def halt() -> None:
        if time.monotonic() - started > 3 * PATIENCE_S:
            enough.set()

    def takes_its_time(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers["Content-Length"]))
        assert enough.wait(30)
        handler.send_response(201)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    registry.answers["PUT upload"] = [None, takes_its_time]
    plain(registry).send(ref(registry), packed, halt)
    assert enough.is_set()
    assert registry.stored[-1] == packed.manifest.encode()


def test_nothing_is_sent_once_it_is_to_end(registry: StandIn, packed: Packed) -> None:
    def halt() -> None:
        raise ActorError(Code.INTERRUPTED, "the actor is stopping")

    with pytest.raises(ActorError, match="the actor is stopping"):
        plain(registry).send(ref(registry), packed, halt)
    assert not registry.asked


def test_the_sites_proxies_lead_to_the_registry(
    certificate: Path, secure: StandIn, registry: StandIn, packed: Packed
) -> None:
    trusted = {"SSL_CERT_FILE": str(certificate / "cert.pem")}
    with SiteProxy() as proxy:
        send(secure, packed, Registry(secure.host, "", {"HTTPS_PROXY": proxy.address, **trusted}))
        assert secure.stored[-1] == packed.manifest.encode()
        assert {line.rpartition(" ")[0] for line in proxy.asked} == {f"CONNECT {secure.host}"}
        proxy.asked.clear()
        assert plain(registry, HTTP_PROXY=proxy.address).digest(ref(registry)) == ""
        assert proxy.asked == [f"HEAD http://{registry.host}/v2/some/where/manifests/1 HTTP/1.1"]
        proxy.asked.clear()
        for word in ("127.0.0.1", registry.host, "127.0.0.0/8", "*"):
            assert plain(registry, HTTP_PROXY=proxy.address, NO_PROXY=word).digest(ref(registry)) == ""
        assert not proxy.asked


def test_a_proxy_that_refuses_its_login_is_told_without_the_login(secure: StandIn) -> None:
    with SiteProxy() as proxy:
        wrong = proxy.address.replace("site-p%40ss", "wrong-p%40ss")
        said = refused(lambda: Registry(secure.host, "", {"HTTPS_PROXY": wrong}).digest(ref(secure)))
    assert "407" in said
    assert "wrong" not in said
    assert not secure.asked


def test_nothing_else_of_the_host_steers_the_way(
    registry: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = home / ".netrc"
    netrc.write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    registry.answers["HEAD manifest"] = [WANTS_LOGIN]
    assert "wants a login, and there is none for it" in refused(lambda: plain(registry).digest(ref(registry)))
    assert [question.headers.get("authorization") for question in registry.asked] == [None]
