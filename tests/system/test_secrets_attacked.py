"""Forms in which a secret got through, and secrets and texts that took too long."""

from __future__ import annotations

import html
import json
import re
import time
from urllib.parse import quote

import pytest

from foundry_implementation_actor.system.secrets import HIDDEN, finder, redactor
from foundry_implementation_actor.system.token_shapes import hide_shapes

SECRET = "wJalr/XUtn'FEMI+K7&bPx<RfiCY>99"
LONG = "".join(f"a{n}Z" for n in range(30_000))


FORMS = {
    "PHP's JSON": json.dumps(SECRET).replace("/", r"\/"),
    "JSON that is safe in HTML": json.dumps(SECRET)
    .replace("&", r"\u0026")
    .replace("<", r"\u003c")
    .replace(">", r"\u003e"),
    "HTML": html.escape(SECRET),
    "HTML with quotes as they are": html.escape(SECRET, quote=False),
    "HTML with decimal quotes": html.escape(SECRET).replace("&#x27;", "&#39;"),
    "a URL in lower case": re.sub("%..", lambda escape: escape[0].lower(), quote(SECRET, safe="")),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_as_other_languages_write_it(form: str) -> None:
    text = f"before {FORMS[form]} after"
    assert SECRET[-4:] not in redactor([SECRET])(text)
    assert finder([SECRET])(text.encode())


@pytest.mark.parametrize("gap", ["\n  \n\t", "\r\n\r\n    ", r"\n  \n", "\n"])
def test_what_is_found_over_lines_is_hidden_there(gap: str) -> None:
    text = f"{gap}before {gap}{SECRET[:9]}{gap}{SECRET[9:15]}{gap}{SECRET[15:]}{gap} after {gap}{SECRET} {gap}"
    assert finder([SECRET])(text.encode())
    assert redactor([SECRET])(text) == f"{gap}before {gap}{HIDDEN}{gap} after {gap}{HIDDEN} {gap}"


def test_a_long_secret_takes_no_memory_and_no_time() -> None:
    started = time.process_time()
    redact = redactor([LONG])
    assert redact(f"before {LONG[:5000]}") == f"before {HIDDEN}"
    assert redact(f"{LONG[5000:]} after") == f"{HIDDEN} after"
    short = redactor([LONG[:3000]])
    assert short(f"a {LONG[:1000]}\n{LONG[1000:3000]} b") == f"a {HIDDEN} b"
    assert time.process_time() - started < 4


def test_a_text_of_the_beginnings_of_tokens_takes_no_time() -> None:
    started = time.process_time()
    for text in ("eyJ-" * 100_000, "eyJaaaaaaaa.eyJ-" * 50_000, "eyJ-" * 400 + "eyJaaaaaaaa." + "eyJ-" * 100_000):
        hide_shapes(text, HIDDEN)
    assert time.process_time() - started < 4
