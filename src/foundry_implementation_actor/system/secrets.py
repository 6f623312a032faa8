"""Keeping secrets where they belong: redaction, the git credential, and the process's own environ."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

HIDDEN = "***"

# The shapes of credentials that are recognised although nobody named them.
_SHAPES = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|sk-ant-[A-Za-z0-9_-]{16,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_SHORTEST = 6
_URL_SAFE = str.maketrans("+/", "-_")

Redact = Callable[[str], str]


def redactor(secrets: Iterable[str]) -> Redact:
    """A function that hides every given secret, its common encodings, and known token shapes.

    A secret shorter than 6 characters is not looked for: hiding it would tear ordinary words.
    """
    forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
    known = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or r"(?!)")

    def redact(text: str) -> str:
        return _SHAPES.sub(HIDDEN, known.sub(HIDDEN, text))

    return redact


def finder(secrets: Iterable[str]) -> Callable[[bytes], bool]:
    """A function that says whether bytes hold any of the given secrets, in any common encoding."""
    forms = {form.encode() for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}

    def finds(content: bytes) -> bool:
        return any(form in content for form in forms)

    return finds


def _forms(secret: str) -> set[str]:
    """The secret as it stands, in URLs, in JSON, in hex, and as any part of a base64 text."""
    raw = secret.encode()
    in_json = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    in_urls = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    forms = {secret, *in_json, *in_urls, raw.hex(), raw.hex().upper()}
    for offset in range(3):
        # A base64 text shifts by what stands before the secret; only whole groups are the same.
        encoded = base64.b64encode(b"\0" * offset + raw).decode()
        core = encoded[4 if offset else 0 :].rstrip("=")
        core = core[: len(core) - len(core) % 4] if len(raw) > _SHORTEST else core
        forms |= {core, core.translate(_URL_SAFE)}
    return {form for form in forms if len(form) >= _SHORTEST}


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


def _environment_block() -> tuple[int, int]:
    """The first address of the environment that this process was started with, and the one after it."""
    # env_start and env_end are the fields 50 and 51 of proc(5)'s stat; the split begins with field 3.
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[47]), int(fields[48])
