"""Secrets are found and hidden in every form in which they may turn up."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.system.secrets import HIDDEN, credential, finder, redactor

TEXT = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs", "Cc")), max_size=40)
SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=10, max_size=60)

FORMS: dict[str, Callable[[str], str]] = {
    "as it stands": lambda secret: secret,
    "in a URL": lambda secret: quote(secret, safe=""),
    "in a URL's path": quote,
    "in a form": quote_plus,
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in hex": lambda secret: secret.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None)
@given(secret=SECRETS, before=TEXT, after=TEXT)
def test_a_secret_is_hidden_in_every_form(form: str, secret: str, before: str, after: str) -> None:
    written = FORMS[form](secret)
    assert written not in redactor([secret])(before + written + after) or written in before + HIDDEN + after
    assert finder([secret])((before + written + after).encode())


def in_lines(text: str, columns: int, newline: str = "\n") -> str:
    return newline.join(text[at : at + columns] for at in range(0, len(text), columns))


@pytest.mark.parametrize("columns", [64, 76])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n    ", "\\n"])
@settings(deadline=None)
@given(secret=SECRETS, before=st.binary(max_size=80), after=st.binary(max_size=80))
def test_a_secret_is_hidden_in_base64_that_is_broken_into_lines(
    columns: int, newline: str, secret: str, before: bytes, after: bytes
) -> None:
    whole = base64.b64encode(before + secret.encode() + after).decode()
    first, last = -(-len(before) * 8 // 6), (len(before) + len(secret)) * 8 // 6
    written = in_lines(whole, columns, newline)
    shown = redactor([secret])(written)
    assert HIDDEN in shown
    assert whole[first:last] not in shown.replace(newline, "")
    assert finder([secret])(written.encode())


@pytest.mark.parametrize("lower", [False, True])
@settings(deadline=None)
@given(secret=SECRETS, before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_a_secret_is_hidden_wherever_it_stands_in_a_base32_text(
    lower: bool, secret: str, before: bytes, after: bytes
) -> None:
    whole = base64.b32encode(before + secret.encode() + after).decode()
    whole = whole.lower() if lower else whole
    shown = redactor([secret])(whole)
    assert HIDDEN in shown
    assert whole[-(-len(before) * 8 // 5) : (len(before) + len(secret)) * 8 // 5] not in shown
    assert finder([secret])(whole.encode())


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read_as", ["utf-8", "latin-1"])
@settings(deadline=None)
@given(secret=SECRETS, before=TEXT, after=TEXT)
def test_a_secret_is_hidden_in_utf_16(order: str, read_as: str, secret: str, before: str, after: str) -> None:
    content = (before + secret + after).encode(order)
    assert finder([secret])(content)
    text = content.decode(read_as, "replace")
    assert HIDDEN in redactor([secret])(text)
    assert HIDDEN in redactor([secret])(json.dumps(text))


def test_a_secret_that_is_folded_is_hidden_as_it_stands_and_in_hex() -> None:
    secret = "tok-0123456789abcdefghijklmnop"
    for text in (secret, secret.encode().hex()):
        for columns in (5, 10, 20):
            assert redactor([secret])(f"is\n{in_lines(text, columns)}\nthere") == f"is\n{HIDDEN}\nthere"
            assert finder([secret])(in_lines(text, columns).encode())


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@settings(deadline=None)
@given(secret=SECRETS, before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_a_secret_is_hidden_wherever_it_stands_in_a_base64_text(
    encode: Callable[[bytes], bytes], secret: str, before: bytes, after: bytes
) -> None:
    """Every group of four characters that holds nothing but the secret is gone."""
    whole = encode(before + secret.encode() + after).decode()
    first, last = -(-len(before) // 3) * 4, (len(before) + len(secret)) // 3 * 4
    shown = redactor([secret])(whole)
    assert HIDDEN in shown
    assert whole[first:last] not in shown
    assert finder([secret])(whole.encode())


@pytest.mark.parametrize("name", ["x-access-token", "a", "ab", "abc", "user@host"])
def test_a_basic_login_is_hidden(name: str) -> None:
    token = "tok-0123456789abcdef"
    header = base64.b64encode(f"{name}:{token}".encode()).decode()
    assert header not in redactor([token])(f"Authorization: Basic {header}")


@settings(deadline=None)
@given(secret=st.text(min_size=6, max_size=40).filter(lambda s: s.isprintable()), text=TEXT)
def test_any_printable_secret_is_hidden_in_json(secret: str, text: str) -> None:
    for ascii_only in (True, False):
        written = json.dumps({"text": text, "key": secret}, ensure_ascii=ascii_only)
        assert json.dumps(secret, ensure_ascii=ascii_only) not in redactor([secret])(written)


@settings(deadline=None)
@given(text=TEXT)
def test_a_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert redactor(["0123456789-secret"])(text) == text


def test_the_longer_of_two_secrets_leaves_no_end_of_itself() -> None:
    hide = redactor(["secret-one", "secret-one-and-more"])
    assert hide("is secret-one-and-more.") == f"is {HIDDEN}."


def test_a_short_word_is_no_secret() -> None:
    assert redactor(["a", "on", "token"])("a token on a table") == "a token on a table"


SHAPES = [
    "ghp_" + "a1B2" * 9, "github_pat_" + "A1b2_" * 8, "ghs_" + "x9" * 18, "glpat-" + "ab12-" * 4,
    "sk-ant-api03-" + "Zz9-_" * 8,
]  # fmt: skip


@pytest.mark.parametrize("token", SHAPES)
def test_the_shape_of_a_known_token_is_hidden_although_nobody_named_it(token: str) -> None:
    assert redactor([])(f"use {token}, please") == f"use {HIDDEN}, please"


def test_a_login_in_a_url_is_hidden_and_the_address_stays() -> None:
    assert redactor([])("fetch https://me:pass@host/x") == f"fetch https://{HIDDEN}@host/x"


def test_a_credential_can_be_read_once() -> None:
    with credential("x-access-token", "tok-1") as descriptor:
        assert os.read(descriptor, 1000) == b"username=x-access-token\npassword=tok-1\n"
        assert os.read(descriptor, 1000) == b""


def in_a_process(code: str, **environ: str) -> str:
    argv = [
        sys.executable,
        "-c",
        f"import os, subprocess\nfrom foundry_implementation_actor.system.secrets import *\n{code}",
    ]
    env = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout


def test_scrubbing_empties_what_the_kernel_shows_of_the_process() -> None:
    look = (
        "scrub_environment(['TOKEN', 'NOT_SET', 'EMPTY'])\nprint(open('/proc/self/environ').read(), dict(os.environ))"
    )
    shown = in_a_process(look, TOKEN="tok-0123456789", EMPTY="", OTHER="stays")
    assert "tok-" not in shown
    assert "OTHER=stays" in shown
    assert "'OTHER': 'stays'" in shown


def test_a_scrubbed_variable_reaches_no_child() -> None:
    look = "scrub_environment(['TOKEN'])\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout)"
    assert not re.search("TOKEN|tok-", in_a_process(look, TOKEN="tok-0123456789"))


def test_a_variable_that_was_changed_meanwhile_is_scrubbed_too() -> None:
    look = (
        "os.environ['TOKEN'] = 'tok-new-and-longer-than-before'\nscrub_environment(['TOKEN'])\n"
        "print(os.environ.get('TOKEN'), open('/proc/self/environ').read())"
    )
    assert "tok-" not in in_a_process(look, TOKEN="tok-old")


LONG = "tok-0123456789abcdefghijklmnop"


@pytest.mark.parametrize("cut", range(8, len(LONG) - 7))
@pytest.mark.parametrize("space", ["", "\n", "  \n"])
def test_the_halves_of_a_secret_in_two_texts_are_hidden_in_both(cut: int, space: str) -> None:
    hide = redactor([LONG, "another-secret"])
    assert hide(f"it is {LONG[:cut]}{space}") == f"it is {HIDDEN}{space}"
    assert hide(f"{space}{LONG[cut:]}, so it is") == f"{space}{HIDDEN}, so it is"


def test_of_a_secret_that_repeats_itself_the_longest_half_is_hidden() -> None:
    hide = redactor(["a" * 20])
    assert hide("it is " + "a" * 15) == f"it is {HIDDEN}"
    assert hide("a" * 15 + " it is") == f"{HIDDEN} it is"


def test_a_few_characters_of_a_secret_are_no_half_of_it() -> None:
    for text in (
        f"it is {LONG[:7]}",
        f"{LONG[-7:]} is it",
        f"{LONG[:12]} is it",
        f"it is {LONG[-12:]}",
        LONG[8:20] + ".",
    ):
        assert redactor([LONG])(text) == text


# Put together here, so that no scanner takes this file for a leak.
MORE_SHAPES = {
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE", "AWS, for a session": "ASIA" + "IOSFODNN7EXAMPLE",
    "Slack": "xoxb-" + "123456789012-abcdef", "Slack, an app": "xapp-" + "1-A123-456-abcdef0",
    "Google": "AIza" + "Sy0_-aB" * 5, "npm": "npm_" + "aB3" * 12, "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" * 4,
    "a JWT": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0." + "c2lnbmF0dXJl_-x",
    "a JWT without a signature": "eyJ" + "hbGciOiJub25lIn0." + "eyJ" + "zdWIiOiIxMjM0In0.",
}  # fmt: skip


@pytest.mark.parametrize("kind", MORE_SHAPES)
def test_the_shape_of_a_common_token_is_hidden(kind: str) -> None:
    token = MORE_SHAPES[kind]
    for before, after in (("use ", ", please"), ('{"key": "', '"}'), ("KEY=", "\n")):
        assert redactor([])(before + token + after) == before + HIDDEN + after


BODY = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggzsIdJEMdntw9Ppq"


def key_block(kind: str, newline: str = "\n", headers: str = "") -> str:
    label = f"{kind}PRIVATE KEY"
    return newline.join(
        [f"-----BEGIN {label}-----", *headers.splitlines(), BODY, BODY, "abc=", f"-----END {label}-----"]
    )


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n    "])
def test_a_private_key_is_hidden_as_a_whole(kind: str, newline: str) -> None:
    for block in (
        key_block(kind, newline),
        key_block(kind, newline, "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00"),
    ):
        assert redactor([])(f"a{newline}{block}{newline}b") == f"a{newline}{HIDDEN}{newline}b"


def test_a_private_key_that_is_cut_off_is_hidden_as_far_as_it_goes() -> None:
    cut = key_block("")[:120]
    assert redactor([])(f"it is {cut}") == f"it is {HIDDEN}"


ORDINARY = [
    "it looks for -----BEGIN PRIVATE KEY----- and goes on with the next of the many lines", "AKIAlpha and ASIAN",
    "npm_config_cache=/x", "pypi-server and xox-", "eyJhbGci.x.y", "AIzaShort", "https://host/a:b@c",
    "a key: PRIVATE KEY", "data:image/png;base64,xxAKIAIOSFODNN7EXAMPLExx",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_words_that_only_begin_like_a_token_stay(text: str) -> None:
    assert redactor([])(text) == text


@pytest.mark.parametrize("token", [*SHAPES, *MORE_SHAPES.values(), key_block("")])
def test_a_shape_alone_is_not_found_in_a_change(token: str) -> None:
    assert not finder(["another-secret"])(token.encode())


@pytest.mark.parametrize("text", ["-----BEGIN PRIVATE KEY-----" * 4000, "-----BEGIN " + "A" * 300_000, "eyJ" * 100_000])
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    started = time.process_time()
    redactor([LONG])(text)
    assert time.process_time() - started < 2


def as_one_without_rights() -> list[str]:
    """The words before a command that take every right of root's away, to look into any process among them."""
    return ["setpriv", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []


NEIGHBOUR = """
import os, subprocess, sys
from pathlib import Path
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.system.process import run_contained
from foundry_implementation_actor.system.secrets import close_memory
def open_to_a_neighbour():
    places = [f"/proc/{os.getpid()}/{name}" for name in ("environ", "maps", "auxv", "mem", "fd/0")]
    return [subprocess.run(["sh", "-c", f": < {place}"], capture_output=True).returncode == 0 for place in places]
print(open_to_a_neighbour())
close_memory()
print(open_to_a_neighbour())
"""
ITSELF = """
print(len(os.listdir("/proc/self/fd")) > 2, Path("/proc/self/stat").read_bytes()[:1].isdigit())
with open("/dev/stdout", "w") as out:
    out.write("written\\n")
path = {"PATH": os.environ["PATH"]}
child = "for p in self $PPID; do grep -qa PATH= /proc/$p/environ && echo open; done"
bounded = Command(("sh", "-c", child), Path("/"), path, 20.0, most_memory=2**30, most_processes=50)
print(run_contained(bounded).text, end="")
sleeper = Command(("sleep", "60"), Path("/"), path, 20.0, most_memory=1)
print(run_contained(sleeper).ended)
"""


def alone(code: str) -> list[str]:
    argv = [*as_one_without_rights(), sys.executable, "-c", code]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def test_a_closed_memory_keeps_neighbours_of_the_same_user_out() -> None:
    assert alone(NEIGHBOUR) == [str([True] * 5), str([False] * 5)]


def test_a_process_with_a_closed_memory_works_as_before_and_its_children_are_open() -> None:
    """It still sees itself, and looks after the processes, time and memory of what it starts."""
    assert alone(NEIGHBOUR + ITSELF)[2:] == ["True True", "written", "open", "open", "memory"]
