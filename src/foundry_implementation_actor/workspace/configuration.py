"""What a repository brings along that configures programs, and what becomes of it in a run.

Whoever can write to the repository can write these files, and the actor works with its own login. So
none of them acts in the actor, and each kind is told once a run. It is found in the records of the
index that the checkout reads anyway; a few small files are read besides.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.change import GITLINK, LINK, printable
from foundry_implementation_actor.system.files import read_below
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.system.journal import Journal

_SHOWN = 20
_LARGEST_READ = 1024 * 1024
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_SETTINGS = re.compile(r"(?:^|/)\.claude/settings(?:\.local)?\.json\Z")
_HELPERS = ("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "statusLine")
# The paths that say by themselves what they are, all in one pattern: it is put to every path of a large tree.
_BY_PATH = re.compile(
    r"(?:^|/)(?:(?P<claude_files>\.claude(?:/|\Z))|(?P<mcp_servers>\.mcp\.json\Z)"
    r"|(?P<git_hooks>\.(?:husky|githooks|git-hooks|hooks)/|\.?lefthook\.ya?ml\Z|\.pre-commit-config\.ya?ml\Z|\.huskyrc\Z)"
    r"|(?P<rules>\.gitattributes\Z))"
)

_BECOMES: Mapping[str, str] = {
    "claude-files": "inert: sessions read no settings, agents, commands or skills of a repository",
    "claude-hooks": "inert: hooks in a repository's settings are not run",
    "claude-helpers": "inert: programs that a repository's settings name for keys and headers are not run",
    "mcp-servers": "inert: sessions start no server that a repository names",
    "claude-md-link": "handled: followed only to a file of the repository, and never written through",
    "foundry-link": "handled: nothing is written through it; a grounding file that belongs below it stops the run",
    "git-filters": "inert: no driver of that name is configured, so files stay as they are committed",
    "git-hooks": "inert: the actor's git runs no hooks, and the session's git is not told where they are",
    "submodules": "inert: they are not fetched, and stay at their commits; a session may not fill them",
    "lfs-pointers": "inert: the tree holds the pointers, not the files; a session that leaves one alone leaves it "
    "unchanged, one that writes to it replaces the pointer by what it writes",
}


@dataclass(frozen=True)
class Found:
    """One kind of configuration, its paths in the order of the index, and what the actor does about it."""

    kind: str
    paths: tuple[str, ...]

    @property
    def becomes(self) -> str:
        """What becomes of it, beginning with `inert:` or `handled:`."""
        return _BECOMES[self.kind]


class Entry(NamedTuple):
    """One record of an index: the mode as six octal digits, and the path."""

    mode: str
    path: str


def look(git: Git, tree: Path, entries: Sequence[Entry]) -> tuple[Found, ...]:
    """Each kind of configuration that a commit holds.

    Args:
        git: a git directory whose index is the commit's, on `tree`.
        tree: the commit as it is checked out, before anybody else writes to it.
        entries: the records of that index.
    """
    by_path = _by_path(entries)
    settings = [(path, _settings(tree, path)) for path in by_path["claude-files"] if _SETTINGS.search(path)]
    filtered = _filtered(git, tree, by_path["rules"], entries)
    found = {
        **by_path,
        "claude-hooks": [path for path, given in settings if given.get("hooks")],
        "claude-helpers": [path for path, given in settings if any(given.get(name) for name in _HELPERS)],
        "claude-md-link": [e.path for e in entries if e.mode == LINK and e.path == "CLAUDE.md"],
        "foundry-link": [e.path for e in entries if e.mode == LINK and e.path.partition("/")[0] == ".foundry"],
        "submodules": [e.path for e in entries if e.mode == GITLINK],
        "git-filters": list(filtered),
        "lfs-pointers": [path for path, name in filtered.items() if name == "lfs" and _is_pointer(tree, path)],
    }
    return tuple(Found(kind, tuple(found[kind])) for kind in _BECOMES if found.get(kind))


def tell(journal: Journal, found: Sequence[Found]) -> None:
    """Record all of it as one `repository-configuration`; nothing when there is none."""
    if found:
        journal.event("repository-configuration", found=[_told(one) for one in found])


def _told(found: Found) -> dict[str, Any]:
    shown = [printable(path) for path in found.paths[:_SHOWN]]
    return {"kind": found.kind, "paths": shown, "count": len(found.paths), "becomes": found.becomes}


def _by_path(entries: Iterable[Entry]) -> defaultdict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries:
        match = _BY_PATH.search(entry.path)
        if match and match.lastgroup:
            found[match.lastgroup.replace("_", "-")].append(entry.path)
    return found


def _settings(tree: Path, path: str) -> Mapping[str, Any]:
    try:
        given = json.loads(read_below(tree, path, _LARGEST_READ) or b"")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _filtered(git: Git, tree: Path, rules: Iterable[str], entries: Iterable[Entry]) -> dict[str, str]:
    """The files for which attributes name a filter, and its name. Git is asked only where one is named at all."""
    if not any(b"filter" in (read_below(tree, path, _LARGEST_READ) or b"") for path in rules):
        return {}
    paths = b"".join(os.fsencode(entry.path) + b"\0" for entry in entries if entry.mode not in {LINK, GITLINK})
    answered = git.output("check-attr", "--cached", "-z", "--stdin", "filter", stdin=paths)
    return dict(_named(answered))


def _named(answered: bytes) -> Iterator[tuple[str, str]]:
    words = [os.fsdecode(word) for word in answered.split(b"\0")]
    for path, value in zip(words[::3], words[2::3], strict=False):
        if value not in {"unspecified", "unset", "set"}:
            yield path, value


def _is_pointer(tree: Path, path: str) -> bool:
    return (read_below(tree, path, len(_POINTER)) or b"") == _POINTER
