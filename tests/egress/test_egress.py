"""A session reaches the listed hosts through the proxy and no others, and nothing of the proxy is left."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.run import Cause
from foundry_implementation_actor.egress.proxy import HOST_NAME, Limits
from foundry_implementation_actor.engines.claude_code import ClaudeCode
from support.claude import claude_binary
from support.egress import CERTIFICATE, PATIENCE_S, Origin, SiteProxy, Way, read, rest_of, tunnel
from support.model import ScriptedModel, say, use
from support.sessions import Stage


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as origin:
        yield origin
    assert not origin.errors


def test_a_tunnel_leads_to_a_listed_host_and_its_tls_is_its_own(tmp_path: Path) -> None:
    trust = ssl.create_default_context(cadata=CERTIFICATE)
    with Origin(tmp_path) as origin, Way(origin.named) as way:
        with way.connection() as connection:
            assert tunnel(connection, origin.named) == (200, "")
            with trust.wrap_socket(connection, server_hostname=HOST_NAME) as secure:
                secure.sendall(b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                status, body = read(secure)
        assert (status, '"path": "/a"' in body) == (200, True)
        way.close()
        assert way.recorded("egress-end")[0]["bytes_back"] > len(body)


def test_requests_to_several_hosts_follow_one_another_on_one_connection(origin: Origin) -> None:
    with Origin() as other, Way(f"{origin.named},{other.named}") as way:
        connection = HTTPConnection("127.0.0.1", way.port, timeout=PATIENCE_S)
        for host in (origin, other, origin):
            connection.request("POST", f"http://{host.named}/x?y=1#z", body=b"abc", headers={"Accept": "a"})
            response = connection.getresponse()
            assert (response.status, response.will_close) == (200, False)
            response.read()
        first = connection.sock
        connection.request("HEAD", f"http://{origin.named}/")
        assert connection.getresponse().read() == b""
        assert connection.sock is first
        connection.close()
    assert [asked["path"] for asked in origin.asked] == ["/x?y=1", "/x?y=1", "/"]
    assert other.asked[0]["body"] == "abc"


def test_the_target_decides_and_the_host_header_does_not(origin: Origin) -> None:
    with Origin() as other, Way(origin.named) as way:
        assert way.get(f"http://{origin.named}/", f"Host: {other.named}")[0] == 200
        assert way.get(f"http://{other.named}/", f"Host: {origin.named}")[0] == 403
    assert other.asked == []
    assert origin.asked[0]["headers"]["host"] == origin.named


def test_what_belongs_to_one_connection_is_not_passed_on(origin: Origin) -> None:
    with Way(origin.named) as way:
        of_one_hop = ("Proxy-Authorization: Basic eA==", "Connection: x-mine, close", "X-Mine: 1", "Upgrade: websocket")
        way.get(f"http://{origin.named}/", *of_one_hop, "X-Kept: 2")
    headers = origin.asked[0]["headers"]
    assert not {"proxy-authorization", "x-mine", "upgrade", "keep-alive"} & set(headers)
    assert (headers["x-kept"], headers["connection"]) == ("2", "close")


def test_a_stream_comes_as_it_is_sent(origin: Origin) -> None:
    """The host goes on only after its first event has been read, as the events of a model come."""
    with Way(origin.named) as way, way.connection() as connection:
        connection.sendall(f"GET http://{origin.named}/stream HTTP/1.1\r\n\r\n".encode())
        response = HTTPResponse(connection)
        response.begin()
        assert response.readline() == b"first\n"
        origin.go.set()
        assert response.read() == b"\nsecond\n\n"
        connection.sendall(f"GET http://{origin.named}/to-the-end HTTP/1.1\r\n\r\n".encode())
        assert read(connection) == (200, "until the end")
        assert rest_of(connection) == b""


def test_a_body_in_chunks_waits_for_the_hosts_consent(origin: Origin) -> None:
    with Way(origin.named) as way, way.connection() as connection:
        head = f"PUT http://{origin.named}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n")
        assert read(connection)[0] == 200
    assert origin.asked[0]["body"] == "abcde"


def test_a_body_of_many_megabytes_passes_both_ways(origin: Origin) -> None:
    with Way(origin.named) as way:
        connection = HTTPConnection("127.0.0.1", way.port, timeout=PATIENCE_S)
        connection.request("POST", f"http://{origin.named}/", body=b"x" * 20_000_000)
        assert len(connection.getresponse().read()) > 20_000_000
        connection.close()


def test_an_answer_before_the_body_has_come_is_the_last_on_its_connection(origin: Origin) -> None:
    """What is left of the body is no request, whatever it looks like."""
    with Way(origin.named) as way, way.connection() as connection:
        head = f"POST http://{origin.named}/early HTTP/1.1\r\nContent-Length: 9999\r\n\r\n"
        connection.sendall(head.encode())
        assert read(connection)[0] == 200
        assert rest_of(connection) == b""


@pytest.mark.parametrize("resets", [True, False])
def test_a_client_that_goes_away_in_the_middle_of_its_request_frees_the_host(resets: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"{HOST_NAME}:{listener.getsockname()[1]}"
        with Way(named) as way, way.connection() as client:
            client.sendall(f"POST http://{named}/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc".encode())
            with listener.accept()[0] as host:
                host.settimeout(PATIENCE_S)
                sent = b""
                while not sent.endswith(b"abc"):
                    sent += host.recv(1000)
                if resets:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                assert rest_of(host) == b""


REFUSED = [
    "other.example:80", "127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "[::ffff:127.0.0.1]:{port}",
    "host.internal:1", "sub.host.internal:{port}", "169.254.169.254:80",
]  # fmt: skip
MALFORMED = [
    "2130706433:{port}", "0x7f.1:{port}", "0177.0.0.1:{port}", "host.internal@other.example:80",
    "other.example%2f@host.internal:{port}", "host.internal", "host.internal:", "host.internal:{port}:1", ":{port}",
    "host.internal:99999", "host.internal:{port}/", "http://host.internal:{port}", "[::1%lo]:{port}", "é:80",
    "host.internal..:{port}",
]  # fmt: skip


@pytest.mark.parametrize("target", REFUSED)
def test_what_is_not_listed_is_refused_by_name_and_recorded(origin: Origin, target: str) -> None:
    place = target.format(port=origin.server_port)
    with Way(origin.named) as way:
        with way.connection() as connection:
            status, said = tunnel(connection, place)
        assert status == 403
        assert "SESSION_HOSTS" in said
        assert place.partition(":")[0].strip("[") in said
        assert way.get(f"http://{place}/") == (403, said)
        [record] = way.recorded("egress-refused")
        assert record["port"] == int(place.rpartition(":")[2])
    assert origin.asked == []


@pytest.mark.parametrize("target", MALFORMED)
def test_no_odd_spelling_of_a_target_gets_through(origin: Origin, target: str) -> None:
    place = target.format(port=origin.server_port)
    with Way(f"{origin.named},127.0.0.1:{origin.server_port}") as way:
        assert way.connect(place) == 400
        if "/" not in target:
            assert way.get(f"http://{place}/")[0] in {400, 403, 502}
    assert origin.asked == []


@pytest.mark.parametrize("target", ["HOST.Internal:{port}", "host.internal.:{port}"])
def test_a_listed_name_is_the_same_in_every_case_and_with_a_dot(origin: Origin, target: str) -> None:
    with Way(origin.named) as way:
        assert way.connect(target.format(port=origin.server_port)) == 200


def test_a_listed_name_that_leads_to_the_hosts_own_loopback_is_refused() -> None:
    with Way("localhost") as way:
        status, said = way.get("http://localhost/")
        assert status == 403
        assert "localhost leads to" in said
        assert way.connect("localhost:443") == 403
        records = way.recorded("egress-refused")
        assert [record["port"] for record in records] == [80, 443]
        assert all("must be listed with its port" in record["because"] for record in records)


def test_a_name_that_is_listed_with_its_port_may_lead_to_loopback(origin: Origin) -> None:
    with Way(f"localhost:{origin.server_port}") as way:
        assert way.get(f"http://localhost:{origin.server_port}/")[0] == 200


def test_a_name_that_nobody_knows_and_a_port_where_nobody_listens_are_told_apart_from_a_refusal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        silent = taken.getsockname()[1]
    with Way(f"nobody.invalid,{HOST_NAME}:{silent}") as way:
        assert way.get("http://nobody.invalid/") == (502, "the name nobody.invalid cannot be resolved\n")
        assert way.get(f"http://{HOST_NAME}:{silent}/") == (502, f"{HOST_NAME}:{silent} cannot be reached\n")
        assert way.recorded("egress-refused") == []


def test_a_flood_of_refusals_fills_no_record() -> None:
    with Way("a.example", Limits(recorded=5)) as way:
        for number in range(40):
            way.connect(f"b{number % 20}.example:443")
        way.close()
        assert [record["host"] for record in way.recorded("egress-refused")] == [f"b{n}.example" for n in range(5)]
        [end] = way.recorded("egress-end")
        assert (end["refused"], end["connections"]) == (40, 40)


def test_a_site_with_a_proxy_is_left_through_it_and_its_password_stays_here(tmp_path: Path) -> None:
    trust = ssl.create_default_context(cadata=CERTIFICATE)
    with Origin() as plain, Origin(tmp_path) as secure, SiteProxy() as site:
        hosts = f"plain.example:{plain.server_port},localhost:{secure.server_port}"
        with Way(hosts, HTTPS_PROXY=site.address, HTTP_PROXY=site.address) as way:
            status, body = way.get(f"http://plain.example:{plain.server_port}/x")
            assert (status, '"path": "/x"' in body) == (200, True)
            with way.connection() as connection:
                assert tunnel(connection, f"localhost:{secure.server_port}") == (200, "")
                with trust.wrap_socket(connection, server_hostname="localhost") as inside:
                    inside.sendall(b"GET /s HTTP/1.1\r\nConnection: close\r\n\r\n")
                    assert read(inside)[0] == 200
            assert way.connect("other.example:443") == 403
        assert len(site.asked) == 2
        assert "proxy-authorization" not in plain.asked[0]["headers"]
        assert "site-p" not in str(way.records) + body


def test_the_sites_exceptions_and_the_actors_own_host_are_reached_directly(origin: Origin) -> None:
    with SiteProxy() as site:
        hosts = f"localhost:{origin.server_port},{origin.named}"
        with Way(hosts, HTTP_PROXY=site.address, NO_PROXY="localhost") as way:
            assert way.get(f"http://localhost:{origin.server_port}/")[0] == 200
            assert way.get(f"http://{origin.named}/")[0] == 200
        assert site.asked == []


def test_a_sites_proxy_that_says_no_or_nothing_is_told() -> None:
    with SiteProxy() as site:
        wrong = site.address.replace("site-p", "site-q")
        with (
            Way("a.example", HTTPS_PROXY=wrong, HTTP_PROXY="http://127.0.0.1:1") as way,
            way.connection() as connection,
        ):
            status, said = tunnel(connection, "a.example:443")
            assert (status, said) == (502, "the site's proxy does not lead to a.example:443: it answered 407\n")
            assert way.get("http://a.example/") == (502, "the site's proxy cannot be reached\n")


def test_connections_at_once_are_bounded() -> None:
    with Way("a.example", Limits(connections=2)) as way, way.connection(), way.connection():
        answer = way.say(b"")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"2 connections open already" in answer


@pytest.mark.parametrize("head", [b"GET http://a/ HTTP/1.1\r\n" + b"A: b\r\n" * 300, b"GET http://a/" + b"x" * 5000])
def test_a_head_that_is_too_large_is_refused(head: bytes) -> None:
    with Way("a.example", Limits(head_bytes=1000)) as way:
        assert way.say(head).startswith(b"HTTP/1.1 431 ")


def test_a_head_that_does_not_come_is_not_waited_for() -> None:
    with Way("a.example", Limits(head_s=0.2)) as way, way.connection() as half, way.connection() as silent:
        half.sendall(b"GET http://a.example/ HTTP/1.1\r\n")
        assert rest_of(half).startswith(b"HTTP/1.1 408 ")
        assert rest_of(silent) == b""


def test_a_tunnel_in_which_nothing_moves_is_ended(origin: Origin) -> None:
    with Way(origin.named, Limits(idle_s=0.2)) as way, way.connection() as connection:
        assert tunnel(connection, origin.named)[0] == 200
        assert rest_of(connection) == b""


def test_an_answer_that_does_not_come_is_told_and_one_that_stops_is_cut_off(origin: Origin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        named = f"{HOST_NAME}:{mute.getsockname()[1]}"
        with Way(f"{named},{origin.named}", Limits(idle_s=0.2)) as way:
            assert way.get(f"http://{named}/") == (504, f"{named} gave no answer in 0.2 seconds\n")
            stopped = way.say(f"GET http://{origin.named}/stream HTTP/1.1\r\n\r\n".encode())
            assert stopped.endswith(b"first\n\n\r\n")
            origin.go.set()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_of_a_proxy_is_left_when_it_is_closed(origin: Origin) -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    with Way(origin.named) as way, way.connection() as idle, way.connection() as busy, way.connection() as begun:
        assert tunnel(busy, origin.named)[0] == 200
        begun.sendall(b"GET http://")
        assert way.get(f"http://localhost:{origin.server_port}/")[0] == 403
        way.close()
        assert [rest_of(connection) for connection in (idle, busy, begun)] == [b"", b"", b""]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", way.port))
        way.close()
    origin.go.set()
    served = {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}
    assert set(threading.enumerate()) - served <= threads
    assert open_descriptors() <= descriptors + len(served)


def test_a_proxy_serves_more_than_one_listener(origin: Origin) -> None:
    with Way(origin.named) as way:
        second = socket.create_server(("127.0.0.1", 0))
        port = second.getsockname()[1]
        way.also(second)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            assert tunnel(connection, origin.named)[0] == 200


ASK = """\
import sys, urllib.request, urllib.error
try:
    urllib.request.urlopen(sys.argv[1])
except urllib.error.HTTPError as error:
    print(error.read())
"""


def test_the_real_command_line_works_through_it_and_reaches_nothing_else(tmp_path: Path, origin: Origin) -> None:
    stage = Stage(tmp_path)
    (tmp_path / "ask.py").write_text(ASK)
    places = ("other.example", f"{HOST_NAME}:{origin.server_port}")
    look = "; ".join(f"python3 {tmp_path}/ask.py http://{place}/" for place in places)
    with ScriptedModel([use("Bash", command=look), say("done")]) as model:
        named = f"{HOST_NAME}:{model.server_port}"
        with Way(named) as way:
            proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy"), f"http://127.0.0.1:{way.port}")
            told = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": f"http://{named}", **proxies}
            end = stage.drive(ClaudeCode(str(claude_binary())), stage.order(credentials=told))
            assert (end.cause, end.text) == (Cause.FINISHED, "done")
            refused = {(record["host"], record["port"]) for record in way.recorded("egress-refused")}
            assert refused == {("other.example", 80), (HOST_NAME, origin.server_port)}
    [said] = [record["text"] for record in stage.recorded("session-tool-result")]
    assert said.count("SESSION_HOSTS") == 2
    assert origin.asked == []
