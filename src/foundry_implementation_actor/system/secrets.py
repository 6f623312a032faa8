"""Keeping secrets where they belong: redaction, the git credential, and the process's own environ.

A secret is found as it stands, in a URL, in JSON and HTML, in hex, in base64 and base32 wherever in the encoded
text it begins, in UTF-16, and when any of these is broken over lines. It is not found when it was
compressed, encrypted, reversed, or put down in parts: this guards against accidents, not against
somebody who knows the secret and wants it to pass. Half a secret is hidden only where a text ends with
its beginning or begins with its end, because the other half may stand in the next one or in the last;
so redact first and cut afterwards.
"""

from __future__ import annotations

import base64
import bisect
import contextlib
import ctypes
import functools
import html
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from foundry_implementation_actor.system.token_shapes import hide_shapes

HIDDEN = "***"

SECRET_VARIABLES = ("GITHUB_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The environment variables that hold secrets of the actor."""

_SHORTEST = 6
_SHORTEST_HALF = 8
_PR_SET_DUMPABLE = 4
_URL_SAFE = str.maketrans("+/", "-_")
_SAFE_IN_HTML = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&"})
_ESCAPE = re.compile("%[0-9A-F]{2}")
# Where a text is broken into lines, also inside of a JSON string; the next line may be indented.
_BREAK = r"(?:(?:[\r\n]|\\r|\\n)[ \t]*)+"
_BREAKS = re.compile(_BREAK)
_BREAKS_IN_BYTES = re.compile(_BREAK.encode())

Redact = Callable[[str], str]


def redactor(secrets: Iterable[str]) -> Redact:
    """A function that hides every given secret, its common encodings, and known token shapes.

    A secret shorter than 6 characters is not looked for: hiding it would tear ordinary words.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST]
    forms = sorted({form for secret in long_enough for form in _forms(secret)}, key=len, reverse=True)
    shortest = len(forms[-1]) if forms else 0
    hide_halves = _halves(long_enough)

    @functools.cache
    def known() -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, forms)))

    def redact(text: str) -> str:
        # The pattern is slow, and used only where it is known that it finds something.
        if len(text) >= shortest:
            if any(map(text.__contains__, forms)):
                text = known().sub(HIDDEN, text)
            in_one_line = _BREAKS.sub("", text)
            if len(in_one_line) < len(text) and any(map(in_one_line.__contains__, forms)):
                text = _hidden_over_lines(text, known())
        return hide_shapes(hide_halves(text), HIDDEN)

    return redact


def finder(secrets: Iterable[str]) -> Callable[[bytes], bool]:
    """A function that says whether bytes hold any of the given secrets, in any common encoding."""
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST]
    wide = {secret.encode(f"utf-16-{order}") for secret in long_enough for order in ("le", "be")}
    forms = wide | {form.encode() for secret in long_enough for form in _forms(secret)}

    def finds(content: bytes) -> bool:
        if any(form in content for form in forms):
            return True
        in_one_line = _BREAKS_IN_BYTES.sub(b"", content)
        return len(in_one_line) < len(content) and any(form in in_one_line for form in forms)

    return finds


def _hidden_over_lines(text: str, known: re.Pattern[str]) -> str:
    """The text with what the pattern finds in it hidden, wherever it is broken into lines."""
    lines, starts, length = [], [], [0]
    end = 0
    for gap in itertools.chain(_BREAKS.finditer(text), (None,)):
        lines.append(text[end : gap.start() if gap else None])
        starts.append(end)
        length.append(length[-1] + len(lines[-1]))
        end = gap.end() if gap else end

    def place(at: int) -> int:
        line = bisect.bisect_right(length, at, hi=len(lines)) - 1
        return starts[line] + at - length[line]

    shown, end = [], 0
    for found in known.finditer("".join(lines)):
        shown.append(text[end : place(found.start())])
        end = place(found.end() - 1) + 1
    return HIDDEN.join((*shown, text[end:]))


def _halves(secrets: Iterable[str]) -> Redact:
    """A function that hides a secret's beginning at the end of a text, and its end at the beginning."""
    beginnings: dict[str, list[tuple[str, int]]] = {}
    endings: dict[str, list[tuple[str, int]]] = {}
    for secret in secrets:
        for cut in range(len(secret) - 1, _SHORTEST_HALF - 1, -1):  # the longest first
            beginnings.setdefault(secret[cut - _SHORTEST_HALF : cut], []).append((secret, cut))
            endings.setdefault(secret[-cut:][:_SHORTEST_HALF], []).append((secret, cut))

    def hide(text: str) -> str:
        kept = text.rstrip()
        for secret, cut in beginnings.get(kept[-_SHORTEST_HALF:], ()):
            if kept.endswith(secret[:cut]):
                text = kept[:-cut] + HIDDEN + text[len(kept) :]
                break
        kept = text.lstrip()
        for secret, cut in endings.get(kept[:_SHORTEST_HALF], ()):
            if kept.startswith(secret[-cut:]):
                return text[: len(text) - len(kept)] + HIDDEN + kept[cut:]
        return text

    return hide


def _forms(secret: str) -> set[str]:
    """The secret in every form in which the first lines of this module promise to find it."""
    raw = secret.encode()
    in_json = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    in_json |= {form.replace("/", r"\/") for form in in_json} | {form.translate(_SAFE_IN_HTML) for form in in_json}
    in_urls = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    in_urls |= {_ESCAPE.sub(lambda escape: escape[0].lower(), form) for form in in_urls}
    in_html = {html.escape(secret, quote=False), html.escape(secret), html.escape(secret).replace("&#x27;", "&#39;")}
    forms = {secret, *in_json, *in_urls, *in_html, raw.hex(), raw.hex().upper()}
    in_utf_16 = "\0".join(secret)
    forms |= {in_utf_16, json.dumps(in_utf_16)[1:-1]}
    forms |= {form for core in _cores(raw, base64.b64encode, 6) for form in (core, core.translate(_URL_SAFE))}
    forms |= {form for core in _cores(raw, base64.b32encode, 5) for form in (core, core.lower())}
    return {form for form in forms if len(form) >= _SHORTEST}


def _cores(raw: bytes, encode: Callable[[bytes], bytes], bits: int) -> Iterator[str]:
    """The characters that stand for nothing but the secret, for each number of bytes that may be before it.

    Args:
        raw: the secret.
        encode: makes a text of which each character stands for `bits` bits.
        bits: how many.
    """
    for before in range(bits if bits % 2 else bits // 2):
        first, end = -(-before * 8 // bits), (before + len(raw)) * 8 // bits
        yield encode(b"\0" * before + raw).decode()[first:end]


@contextlib.contextmanager
def credential(user: str, token: str) -> Iterator[int]:
    """A descriptor from which git's credential helper can read this login, once.

    The token is in no argv, no environment and no file; see `git.authenticated`.
    """
    reading, writing = os.pipe()
    try:
        os.write(writing, f"username={user}\npassword={token}\n".encode())
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def scrub_environment(names: Iterable[str]) -> None:
    """Forget variables: out of `os.environ` and out of what `/proc/<pid>/environ` shows.

    The kernel shows the memory in which the process got its environment, which unsetting leaves
    as it was, so the values are overwritten there.
    """
    wanted = set(names)
    start, end = _environment_block()
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        key, _, value = entry.partition(b"=")
        if os.fsdecode(key) in wanted:
            ctypes.memset(at + len(key) + 1, 0, len(value))
        at += len(entry) + 1
    for name in wanted & set(os.environ):
        del os.environ[name]


def close_memory() -> None:
    """Keep other processes of this user out of this one: its memory, environment and descriptors in /proc.

    Also no core dump is written, and no debugger of the same user can attach. A process that may
    trace any other, as root's may, is kept out by the session's sandbox only. Programs that this one
    starts are as open as ever.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _environment_block() -> tuple[int, int]:
    """The first address of the environment that this process was started with, and the one after it."""
    # env_start and env_end are the fields 50 and 51 of proc(5)'s stat; the split begins with field 3.
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[47]), int(fields[48])
