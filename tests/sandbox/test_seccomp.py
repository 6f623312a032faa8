"""The filter of system calls, run by a small machine for its instructions."""

from __future__ import annotations

import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.sandbox.calls import CALLS, LATER
from foundry_implementation_actor.sandbox.port import Network
from foundry_implementation_actor.sandbox.seccomp import filter_for, machine

ALLOWED, REFUSED, ABSENT = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
NUMBERS = machine()
assert NUMBERS is not None, "this machine's system calls are not known"
TCP_ONLY = filter_for(Network.PROXIED, own_network=False)
OWN = filter_for(Network.PROXIED, own_network=True)


def number(name: str) -> int:
    assert NUMBERS is not None
    found = NUMBERS.number(name)
    assert found is not None
    return found


def verdict(program: bytes, call: int, *arguments: int, arch: int = 0) -> int:
    """What a filter says of a call: classic BPF, as far as filters use it."""
    assert NUMBERS is not None
    known = [*(argument & 0xFFFFFFFFFFFFFFFF for argument in arguments), 0, 0, 0, 0, 0, 0][:6]
    called = struct.pack("=IIQ6Q", call & 0xFFFFFFFF, arch or NUMBERS.arch, 0, *known)
    steps, at, held = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, then, other, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", called, value)
            case 0x54:
                held &= value
            case 0x15:
                at += then if held == value else other
            case 0x35:
                at += then if held >= value else other
            case 0x45:
                at += then if held & value else other
            case 0x06:
                return int(value)
            case _:
                pytest.fail(f"an instruction that filters do not know: {code:#x}")


@pytest.mark.parametrize("name", ["keyctl", "bpf", "mount", "setns", "open_by_handle_at", "move_mount", "chroot"])
def test_what_nobody_needs_is_refused(name: str) -> None:
    assert {verdict(program, number(name)) for program in (TCP_ONLY, OWN)} == {REFUSED}


@pytest.mark.parametrize("name", ["clone3", "io_uring_setup"])
def test_what_programs_can_do_without_is_absent(name: str) -> None:
    assert verdict(OWN, number(name)) == ABSENT


@given(st.integers(0, 0x3FFFFFFF), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_other_call_is_allowed_whatever_it_is_given(call: int, arguments: list[int]) -> None:
    assert NUMBERS is not None
    if call not in {*NUMBERS.numbers.values(), *LATER.values()}:
        assert verdict(TCP_ONLY, call, *arguments) == ALLOWED


@given(st.integers(0, 0xFFFFFFFF))
def test_calls_of_another_machine_are_refused(call: int) -> None:
    assert NUMBERS is not None
    other = next(one.arch for one in CALLS.values() if one.arch != NUMBERS.arch)
    assert verdict(OWN, call, arch=other) == REFUSED
    if NUMBERS.has_x32:
        assert verdict(OWN, call | 0x40000000) == REFUSED


@given(st.integers(0, 2**32 - 1))
def test_new_namespaces_are_refused_and_new_processes_are_not(flags: int) -> None:
    namespaces = flags & 0x7E020000
    assert (verdict(OWN, number("unshare"), flags) == REFUSED) == bool(flags & 0x7E020080)
    assert (verdict(OWN, number("clone"), flags & ~0xFF | 17) == REFUSED) == bool(namespaces)


@given(st.integers(0, 0o7777), st.integers(0, 2**32 - 1))
def test_no_file_lends_its_owners_rights_however_it_is_made(mode: int, flags: int) -> None:
    lends = bool(mode & 0o6000)
    assert (verdict(OWN, number("fchmod"), 3, mode) == REFUSED) == lends
    assert (verdict(OWN, number("fchmodat"), 3, 0, mode) == REFUSED) == lends
    assert (verdict(OWN, number("fchmodat2"), 3, 0, mode) == REFUSED) == lends
    creates = bool(flags & (0o100 | 0o20000000))
    assert (verdict(OWN, number("openat"), 3, 0, flags, mode) == REFUSED) == (lends and creates)
    assert verdict(OWN, number("openat2")) == ABSENT


@given(
    st.sampled_from([0, 1, 2, 10, 16, 17, 38, 40, 43, 44]),
    st.sampled_from([1, 2, 3, 4, 5, 6]),
    st.sampled_from([0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK]),
    st.sampled_from([0, 6, 17, 1, 132, 262, 4]),
)
def test_sockets_are_local_or_of_the_internet_and_where_that_is_asked_tcp(
    family: int, kind: int, flags: int, protocol: int
) -> None:
    said = {name: verdict(one, number("socket"), family, kind | flags, protocol) for name, one in
            (("tcp", TCP_ONLY), ("own", OWN))}  # fmt: skip
    internet = family in {2, 10}
    always = family == 1 or (family == 16 and protocol == 0)
    assert (said["own"] == ALLOWED) == (always or internet)
    assert (said["tcp"] == ALLOWED) == (always or (internet and kind == 1 and protocol in {0, 6}))


def test_data_never_travels_with_the_first_packet_where_only_connecting_is_ruled_on() -> None:
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        arguments = [7, 7, 7, 7]
        arguments[place] = 0x20000000 | 0x4000
        assert verdict(TCP_ONLY, number(name), *arguments) == REFUSED
        arguments[place] = 0x4000
        assert verdict(TCP_ONLY, number(name), *arguments) == ALLOWED
    assert verdict(TCP_ONLY, number("setsockopt"), 5, 6, 30) == REFUSED
    assert verdict(TCP_ONLY, number("setsockopt"), 5, 6, 1) == ALLOWED
    assert verdict(TCP_ONLY, number("setsockopt"), 5, 1, 30) == ALLOWED


def test_nobody_types_into_a_terminal_for_another() -> None:
    assert verdict(OWN, number("ioctl"), 0, 0x5412) == REFUSED
    assert verdict(OWN, number("ioctl"), 0, 0x541C) == REFUSED
    assert verdict(OWN, number("ioctl"), 0, 0x1_0000_5412) == REFUSED  # the kernel looks at the lower half only
    assert verdict(OWN, number("ioctl"), 0, 0x5413) == ALLOWED
