"""What credentials look like, for those that nobody named to the actor.

A shape hides text in records and answers. It refuses no change: examples and fixtures of such tokens
are common in repositories, and only a secret that the actor knows is certainly one.
"""

from __future__ import annotations

import re

_BEGIN, _END = (rf"-----{edge} [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----" for edge in ("BEGIN", "END"))
_CUT_OFF = r"(?:(?:[ \t\r\n]|\\[rn]){0,8}[A-Za-z0-9+/=]{16,})+"

# Each after a word that must stand in the text: looking for a word is far cheaper than for a pattern.
_SHAPES = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("ghp_", r"ghp_[A-Za-z0-9]{20,}"),
        ("gho_", r"gho_[A-Za-z0-9]{20,}"),
        ("ghu_", r"ghu_[A-Za-z0-9]{20,}"),
        ("ghs_", r"ghs_[A-Za-z0-9]{20,}"),
        ("ghr_", r"ghr_[A-Za-z0-9]{20,}"),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
        ("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
        ("sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}"),
        ("AKIA", r"(?<![A-Za-z0-9+/])AKIA[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
        ("ASIA", r"(?<![A-Za-z0-9+/])ASIA[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
        ("xox", r"\bxox[abceoprs]-[A-Za-z0-9-]{10,}"),
        ("xapp-", r"\bxapp-[A-Za-z0-9-]{10,}"),
        ("AIza", r"(?<![A-Za-z0-9+/])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("pypi-", r"\bpypi-[A-Za-z0-9_-]{50,}"),
        ("eyJ", r"\beyJ[A-Za-z0-9_-]{8,2000}+\.eyJ[A-Za-z0-9_-]{8,20000}+\.[A-Za-z0-9_-]*"),
        ("PRIVATE KEY", rf"{_BEGIN}(?:(?:[^-]|-(?!----)){{0,20000}}{_END}|{_CUT_OFF})"),
        ("://", r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    )
)


def hide_shapes(text: str, instead: str) -> str:
    """The text with `instead` in the place of everything that looks like a credential."""
    for word, pattern in _SHAPES:
        if word in text:
            text = pattern.sub(instead, text)
    return text
