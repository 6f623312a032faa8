"""What the YAML library says about a broken text, in the words of the one who wrote it."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # as the library counts lines


class Said(NamedTuple):
    """What is wrong, what to write instead, and whether the place to look at is where the thing began."""

    what: str
    write: str
    at_start: bool = False


# The library's own words, each looked for in this order; `{sign}` is what it found in quotes.
_WORDS = (
    ("'\\t'", Said("a tab", "indent with spaces, never with tabs")),
    ("cannot start any token", Said("a value cannot start with {sign}", "put the value in quotes")),
    (
        "mapping values are not allowed",
        Said("a second `: ` in one value", "check the indentation, and put a value that holds `: ` in quotes"),
    ),
    (
        "could not find expected ':'",
        Said("a line that is no `key: value`", "end each key with `: `, and put a value of several lines in quotes",
             at_start=True),
    ),
    ("unexpected end of stream", Said("a quote that is never closed", "close it", at_start=True)),
    ("<stream end>", Said("a bracket that is never closed", "close it", at_start=True)),
    ("expected ',' or", Said("a comma or the closing bracket is missing", "write it, or put the item in quotes")),
    ("expected the node content", Said("{sign} where a value belongs", "write the value, or put it in quotes")),
    ("sequence entries are not allowed", Said("a list on its key's line", "write each `- ` on a line below the key")),
    ("unknown escape", Said("a backslash in double quotes that is no escape", "use single quotes")),
    ("expected escape sequence", Said("a backslash in double quotes that is no escape", "use single quotes")),
    ("chomping or indentation", Said("text behind `|` or `>`", "start the text on the next line")),
    ("'<document start>'", Said("the text goes on after its end", "start every key in the column of the first one")),
    ("scanning an alias", Said("`*` at the start of a value", "put the value in quotes")),
    ("scanning an anchor", Said("`&` at the start of a value", "put the value in quotes")),
)  # fmt: skip


def in_words(error: yaml.MarkedYAMLError, text: str) -> Said:
    """The library's error in plain words; `text` is what was read."""
    problem, about = error.problem or "", f"{error.context or ''}: {error.problem or ''}"
    lines, mark = _LINE_END.split(text), error.problem_mark
    if mark and "expected <block end>" in problem:
        return _block(lines, mark.line, mark.column)
    if mark and "mapping values are not allowed" in problem and ": " not in lines[mark.line][: mark.column]:
        return _second_line(lines, mark.line)
    said = next((said for sign, said in _WORDS if sign in about), Said(problem or "no YAML", "correct the YAML here"))
    if "{sign}" not in said.what:
        return said
    return said._replace(what=said.what.replace("{sign}", repr(problem.split("'")[1]) if "'" in problem else "this"))


def _block(lines: list[str], line: int, column: int) -> Said:
    """Something stands where its block can neither go on nor end; both numbers start at 0."""
    here = lines[line] if line < len(lines) else ""
    if here[:column].strip(" -"):
        return Said("more text behind a value that has ended", "put the whole value in one pair of quotes")
    above = _above(lines, line)
    if _indentation(lines[above]) != column:
        return _other_column(above)
    what = f"a key and a list's `- ` stand at the same indentation (see line {above + 1})"
    return Said(what, "indent the one that belongs to the other")


def _second_line(lines: list[str], line: int) -> Said:
    """A line with a key where the value of the line above could only go on."""
    above = _above(lines, line)
    if _indentation(lines[above]) != _indentation(lines[line]):
        return _other_column(above)
    return Said(f"line {above + 1} is no `key: value`", "end each key with `: `")


def _other_column(above: int) -> Said:
    return Said(f"the indentation differs from line {above + 1}", "start what belongs together in the same column")


def _above(lines: list[str], line: int) -> int:
    """The nearest line above that holds something; the first one when there is none."""
    return next((at for at in range(line - 1, -1, -1) if lines[at].strip()), 0)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
