"""What each single value of a sidecar may be: pure tests of one string.

Every rule takes the string and gives None, or what is wrong with it and what to write. The source of
the rules is CONTRACT 1 and 2, and the grammars of image references and git refs behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from foundry_implementation_actor.domain.capability import MOST_REMEDIATIONS, PLACEHOLDERS, unknown_placeholders
from foundry_implementation_actor.domain.document import Other, Wrong, quoted

Rule = Callable[[str], Wrong | None]

CONTEXT = "foundry-implementation-actor/agentic-context/v1"
ENGINE = "claude-code"
LOADS = ("eager", "on-demand")

# The longest names that still fit a clone's directory name and an image reference (255 bytes each).
MAX_CAPABILITY = 128
MAX_COMPONENT = 64

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_IMAGE_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_GROUNDING = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?: [A-Za-z0-9._-]+)*")
_PART = re.compile(r"[\w.+@][\w.+@ -]*(?<! )")

_NAME = f"({'|'.join(PLACEHOLDERS)})"
_LIKE_PLACEHOLDER = re.compile(
    rf"\{{\{{\s*{_NAME}\s*\}}\}}|\$\{{\s*{_NAME}\s*\}}|\$\(?{_NAME}\b\)?|\{{\s*{_NAME}\s*\}}|<{_NAME}>|%{_NAME}%",
    re.IGNORECASE,
)
_SHELL_VALUE = re.compile(r"\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|\$\([^)]*\)|^~/")

_DIGIT = re.compile(r"[0-9]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

_CAPABILITY_FORM = "write it as `<ORG>.<DOMAIN>.CAP.<AREA>.<NUMBER>.<NAME>`"
_PATH_FORM = "write a path relative to the repository's root, such as `src/api/`"
_PARTS_FORM = "use letters, digits and . _ - + @ in each part, starting with none of - and space"


def context(value: str) -> Wrong | None:
    """The contract that the sidecar is written for."""
    if value == CONTEXT:
        return None
    return Wrong(f"UNMIGRATED: {quoted(value)} is not the contract of this release", f"write `context: {CONTEXT}`")


def engine(value: str) -> Wrong | None:
    """The engine that the cards' doors name."""
    return None if value == ENGINE else Wrong(f"{quoted(value)} is no engine of the cards", f"write `engine: {ENGINE}`")


def capability(value: str) -> Wrong | None:
    """An id whose two halves, around its one `CAP` segment, are a registry path."""
    segments = value.split(".")
    if "" in segments:
        return Wrong(f"{quoted(value)} has an empty segment", _CAPABILITY_FORM)
    if bad := next((segment for segment in segments if not _SEGMENT.fullmatch(segment)), None):
        return Wrong(f"the segment {quoted(bad)} holds more than letters, digits, _ and -", _CAPABILITY_FORM)
    if len(value) > MAX_CAPABILITY:
        return Wrong(f"{len(value)} characters, more than {MAX_CAPABILITY}", "write a shorter id")
    return _capability_halves([segment.lower() for segment in segments])


def _capability_halves(segments: list[str]) -> Wrong | None:
    if "cap" not in segments:
        return Wrong("no segment is `CAP`", _CAPABILITY_FORM)
    if segments.count("cap") > 1:
        return Wrong(f"{segments.count('cap')} segments are `CAP`, and one has to be", _CAPABILITY_FORM)
    at = segments.index("cap")
    halves = ".".join(segments[:at]), ".".join(segments[at + 1 :])
    if not all(halves):
        return Wrong("nothing stands before or after the `CAP` segment", _CAPABILITY_FORM)
    bad = next((half for half in halves if not _IMAGE_PATH.fullmatch(half)), None)
    if bad is None:
        return None
    return Wrong(f"{quoted(bad)} cannot stand in an image reference", "end no segment with - or _, and use no ___")


def repository(value: str) -> Wrong | None:
    """`<owner>/<repo>` in the forge's characters, without the `.git` that is added to it."""
    owner, slash, name = value.partition("/")
    form = "write `<owner>/<repo>`, such as `my-org/my-repository`"
    if not slash or "/" in name:
        return Wrong(f"{quoted(value)} is not an owner and a repository", form)
    if not _OWNER.fullmatch(owner):
        return Wrong(f"{quoted(owner)} cannot be an owner (letters, digits, _ and -, at most 39)", form)
    if not _REPOSITORY.fullmatch(name) or name in {".", ".."}:
        return Wrong(f"{quoted(name)} cannot be a repository (letters, digits, . _ and -, at most 100)", form)
    return Wrong(f"{quoted(name)} ends in `.git`", "leave `.git` out") if name.lower().endswith(".git") else None


def component_name(value: str) -> Wrong | None:
    """A part of an image reference and of a git tag."""
    form = "write a lower case name such as `web`"
    if not _IMAGE_PATH.fullmatch(value) or value.endswith(".lock"):
        return Wrong(f"{quoted(value)} cannot stand in an image reference and a git tag", form)
    return Wrong(f"{len(value)} characters, more than {MAX_COMPONENT}", form) if len(value) > MAX_COMPONENT else None


def grounding_name(value: str) -> Wrong | None:
    """A short label for one knowledge source."""
    if _GROUNDING.fullmatch(value) and len(value) <= MAX_COMPONENT:
        return None
    return Wrong(f"{quoted(value)} is no name", f"write at most {MAX_COMPONENT} letters, digits, spaces and . _ -")


def component_path(value: str) -> Wrong | None:
    """A component's root: a directory of the repository, written with `/` at its end."""
    if not value.endswith("/"):
        return Wrong(f"{quoted(value)} does not end in `/`", f"write {quoted(value + '/')}")
    return directory(value)


def directory(value: str) -> Wrong | None:
    """A directory below the repository's root; `/` at its end is allowed."""
    return _parts(value.removesuffix("/"), value) or _reserved(value.removesuffix("/"))


def directory_or_root(value: str) -> Wrong | None:
    """A directory of the repository; `.` is its root."""
    return None if value in {".", "./"} else directory(value)


def into(value: str) -> Wrong | None:
    """The file inside the clone that a fetched knowledge source is written to."""
    name = value.rpartition("/")[2]
    name = name if _PART.fullmatch(name.strip(".")) else "domain.md"
    form = f"write a file's path in the clone, such as `.foundry/{name}`"
    if value.endswith("/"):
        return Wrong(f"{quoted(value)} is a directory", form)
    return _parts(value, value, form) or _reserved(value)


def _parts(bare: str, value: str, form: str = _PATH_FORM) -> Wrong | None:
    if value.startswith("/"):
        return Wrong(f"{quoted(value)} is absolute", form)
    parts = bare.split("/")
    if "" in parts:
        return Wrong(f"{quoted(value)} has an empty part", form)
    if dots := next((part for part in parts if part in {".", ".."}), None):
        return Wrong(f"{quoted(value)} has a part `{dots}`", form)
    bad = next((part for part in parts if not _PART.fullmatch(part)), None)
    return None if bad is None else Wrong(f"the part {quoted(bad)} is not allowed", _PARTS_FORM)


def _reserved(path: str) -> Wrong | None:
    parts = path.split("/")
    if ".git" in (part.lower() for part in parts):
        return Wrong(f"{quoted(path)} lies in git's own directory", "choose another path")
    if parts[0] == "CLAUDE.md":
        return Wrong("`CLAUDE.md` is written by the actor itself", "choose another path")
    return None


def pattern(value: str) -> Wrong | None:
    """A pattern of repository paths, such as `**/package-lock.json`."""
    form = "write a pattern relative to the repository's root, such as `**/package-lock.json`"
    if value.startswith(("/", "!")) or "\\" in value:
        return Wrong(f"{quoted(value)} starts with `/` or `!`, or holds a backslash", form)
    if {"", ".", ".."} & set(value.removesuffix("/").split("/")):
        return Wrong(f"{quoted(value)} has an empty part, `.` or `..`", form)
    return None


def load(value: str) -> Wrong | None:
    """When the session gets a knowledge source."""
    if value in LOADS:
        return None
    return Wrong(f"{quoted(value)} is no way to load", "write `eager` (read before the first turn) or `on-demand`")


def writes(value: str) -> Wrong | None:
    """What may write below the gate's root."""
    return None if value == "gate" else Wrong(f"{quoted(value)} is not known", "write `writes: gate`")


def remediate(value: object) -> int | None:
    """How many further sessions may be given the output of a red `verify`; None for a value that says no such number.

    Out of a file a number comes as it is written there, out of `from_dict` as an `int`.
    """
    number = int(value.text) if isinstance(value, Other) and _DIGIT.fullmatch(value.text) else value
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if 0 <= number <= MOST_REMEDIATIONS else None


def fetch_word(value: str) -> Wrong | None:
    """One word of a fetch command; its placeholders are known ones."""
    unknown = unknown_placeholders(value)
    if not unknown:
        return None
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    return Wrong(f"{{{unknown[0]}}} is no placeholder", f"write one of {known}")


def unfilled(word: str) -> Wrong | None:
    """Something in a fetch word that looks as if it would be filled in, and will not be."""
    for found in _LIKE_PLACEHOLDER.finditer(word):
        name = str(found[found.lastindex or 0]).lower()
        if found[0] != f"{{{name}}}":
            return Wrong(f"{quoted(found[0])} is not how a placeholder is written", f"write {{{name}}}")
    shell = _SHELL_VALUE.search(word)
    if shell is None:
        return None
    return Wrong(f"no shell fills in {quoted(shell[0])}", "write the value out, or call `sh -c`")


def free(_value: str) -> Wrong | None:
    """Any text."""
    return None


def unprintable(value: str) -> Wrong | None:
    """A character that no key's value may hold: a control other than tab and line end, or half a pair."""
    bad = _UNPRINTABLE.search(value)
    return Wrong(f"holds the character {bad.group()!a}", "remove it") if bad else None
