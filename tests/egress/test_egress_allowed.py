"""Which hosts a session may reach: the list is read strictly, and an address cannot pass for a name."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.domain.fitness import State
from foundry_implementation_actor.egress.allowed import Allowed, Target
from foundry_implementation_actor.egress.loopback import mistaken
from foundry_implementation_actor.egress.route import SiteProxy, Upstream


def lists(hosts: str, host: str, port: int) -> bool:
    return Allowed.read(hosts).lists(Target.of(host, port))


@pytest.mark.parametrize(
    ("hosts", "host", "port", "listed"),
    [
        ("api.example.org", "api.example.org", 443, True),
        ("api.example.org", "API.Example.ORG.", 80, True),
        ("api.example.org", "api.example.org", 8080, False),
        ("api.example.org", "evil.api.example.org", 443, False),
        ("api.example.org", "api.example.org.evil.net", 443, False),
        ("api.example.org:8080", "api.example.org", 8080, True),
        ("api.example.org:8080", "api.example.org", 443, False),
        (" a.example , b.example:81 ,", "b.example", 81, True),
        ("*.example.org", "deep.er.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*.example.org:8443", "a.example.org", 8443, True),
        ("*", "anything.example", 12345, True),
        ("10.1.2.3:5000", "10.1.2.3", 5000, True),
        ("10.1.2.3", "::ffff:10.1.2.3", 443, True),
        ("[2001:db8::1]:81", "2001:DB8:0::1", 81, True),
        ("::1", "::1", 80, True),
        ("", "api.example.org", 443, False),
    ],
)
def test_a_host_is_reached_by_its_name_and_port(hosts: str, host: str, port: int, listed: bool) -> None:
    assert lists(hosts, host, port) is listed


@pytest.mark.parametrize(
    ("hosts", "warned"),
    [
        ("127.0.0.1:8080", {"127.0.0.1:8080": "host.internal:8080"}),
        (
            "api.example.org,localhost:5000,127.0.0.1",
            {"localhost:5000": "host.internal:5000", "127.0.0.1": "host.internal,"},
        ),
        ("[::1]:81,LOCALHOST.:82", {"[::1]:81": "host.internal:81", "localhost:82": "host.internal:82"}),
        ("*.localhost:83", {"*.localhost:83": "host.internal:83"}),
        ("::ffff:127.0.0.1", {"127.0.0.1": "host.internal,"}),
        ("host.internal:8080,10.1.2.3:5000,127.0.0.9:80,*.example.org,localhost.example.org", {}),
        ("*,127.0.0.1:8080", {}),
        ("", {}),
    ],
)
def test_an_item_that_means_the_sessions_own_loopback_is_warned_of_with_the_one_to_write(
    hosts: str, warned: dict[str, str]
) -> None:
    found = list(mistaken(Allowed.read(hosts)))
    assert [finding.seen.partition(" is the session's own loopback")[0] for finding in found] == list(warned)
    assert all(meant in finding.mend for finding, meant in zip(found, warned.values(), strict=True))
    assert {(finding.subject, finding.state, finding.stops) for finding in found} <= {
        ("SESSION_HOSTS", State.WARNING, False)
    }


@pytest.mark.parametrize(
    "item",
    ["https://api.example.org", "me@api.example.org", "api.example.org/v1", "api.example.org:", "a.example:0",
     "a.example:65536", "a.example:http", "*.10.0.0.1", "*:443", "a*.example", "*.*.example", "-a.example",
     "a..example", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1", "[a.example]:1", "bücher.example", "a b",
     "a.example:٤٤٣", "fe80::1%eth0", "x" * 300],
)  # fmt: skip
def test_an_item_that_is_no_host_is_refused_by_name(item: str) -> None:
    with pytest.raises(ValueError, match=r"^holds ") as raised:
        Allowed.read(f"good.example,{item}")
    assert (repr(item)[:60] if "@" not in item else "a login") in str(raised.value)
    assert "; write " in str(raised.value)


ELSEWHERE = [
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "127.0.0.01",
    "1",
    "0",
    "0x",
    "a.1",
    "1.2.3.4.5",
]


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_spelling_that_only_a_resolver_takes_for_an_address_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match="is an address in a spelling"):
        Target.of(host, 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "::ffff:7f00:1", "0:0:0:0:0:ffff:127.0.0.1", "169.254.169.254"])
def test_an_address_passes_for_no_name(host: str) -> None:
    target = Target.of(host.strip("[]"), 443)
    assert target.address is not None
    assert not Allowed.read("api.example.org,*.internal,localhost").lists(target)


INSIDE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd00::1",
    "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::",
]  # fmt: skip
NOBODYS = [
    "169.254.169.254", "169.254.170.2", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
    "240.0.0.1", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "::ffff:169.254.169.254",
    "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::",
]  # fmt: skip


@pytest.mark.parametrize("address", [*INSIDE, *NOBODYS])
def test_a_listed_name_that_turns_to_an_inner_address_is_not_followed(address: str) -> None:
    for hosts in ("a.example", "*.example"):
        assert not Allowed.read(hosts).reaches(Target.of("a.example", 443), ipaddress.ip_address(address))


@pytest.mark.parametrize("address", INSIDE)
def test_a_name_that_is_listed_with_its_port_may_be_an_inner_one(address: str) -> None:
    assert Allowed.read("a.example:443").reaches(Target.of("a.example", 443), ipaddress.ip_address(address))


@pytest.mark.parametrize("address", NOBODYS)
@pytest.mark.parametrize("hosts", ["a.example:80", "*.example:80", "*"])
def test_no_name_leads_to_where_clouds_keep_their_credentials(hosts: str, address: str) -> None:
    assert not Allowed.read(hosts).reaches(Target.of("a.example", 80), ipaddress.ip_address(address))


def test_an_address_that_is_listed_itself_is_reached_whatever_it_is() -> None:
    target = Target.of("169.254.169.254", 80)
    assert target.address is not None
    assert Allowed.read("169.254.169.254").reaches(target, target.address)
    assert not Allowed.read("*").reaches(target, target.address)


def test_a_public_address_of_a_listed_name_is_reached() -> None:
    assert Allowed.read("a.example").reaches(Target.of("a.example", 443), ipaddress.ip_address("93.184.215.14"))


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_list_or_is_refused_in_words(text: str) -> None:
    try:
        allowed = Allowed.read(text)
    except ValueError as error:
        assert str(error).startswith("holds ")  # noqa: PT017 - both ends are right
    else:
        assert len(allowed.entries) <= text.count(",") + 1


@settings(deadline=None)
@given(st.text(alphabet="0123456789abcdefx.:[]%*", max_size=24))
def test_whatever_a_resolver_would_take_for_an_address_counts_as_that_or_as_nothing(host: str) -> None:
    try:
        target = Target.of(host, 443)
    except ValueError:
        return
    assert target.address is not None or not target.host.rpartition(".")[2].isdigit()


@pytest.mark.parametrize(
    ("host", "port", "direct"),
    [
        ("a.corp.example", 443, True), ("corp.example", 443, True), ("acorp.example", 443, False),
        ("b.example", 443, True), ("c.example", 8443, True), ("c.example", 443, False), ("10.1.2.3", 443, True),
        ("10.9.2.3", 443, False), ("d.example", 443, False),
    ],
)  # fmt: skip
def test_the_sites_own_exceptions_hold(host: str, port: int, direct: bool) -> None:
    site = {
        "HTTPS_PROXY": "http://proxy.example:3128",
        "no_proxy": ".corp.example, b.example,c.example:8443 10.1.0.0/16",
    }
    proxy = Upstream.read(site).proxy_for(Target.of(host, port), tunnel=True)
    assert (proxy is None) is direct


def test_the_sites_proxies_are_read_as_every_program_reads_them() -> None:
    site = {"HTTPS_PROXY": "ignored", "https_proxy": "https://me:p%40ss@p.example", "ALL_PROXY": "p2.example:1"}
    upstream = Upstream.read(site)
    assert upstream.https == SiteProxy("p.example", 443, tls=True, login="me:p@ss")
    assert upstream.http == SiteProxy("p2.example", 1)
    assert "p@ss" not in repr(upstream)
    assert (
        Upstream.read({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}).proxy_for(Target.of("a", 1), tunnel=True) is None
    )
    assert Upstream.read({}) == Upstream()


@pytest.mark.parametrize(
    "value", ["socks5://me:secret@p.example:1080", "http://", "http://p:x", "http://[::1", "ftp://p:1"]
)
def test_a_sites_proxy_that_cannot_be_used_is_named_and_not_shown(value: str) -> None:
    with pytest.raises(SettingsError, match="HTTPS_PROXY is not the address") as raised:
        Upstream.read({"HTTPS_PROXY": value, "HTTP_PROXY": "http://p:1"})
    assert "secret" not in str(raised.value)
