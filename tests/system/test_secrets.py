"""Secrets are found and hidden in every form in which they may turn up."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
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
