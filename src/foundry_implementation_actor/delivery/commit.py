"""The one commit of a run, made by the actor on the recorded base, and what its trailers say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.system.git import Git

TASK_TRAILER = "Task"
REQUEST_TRAILER = "Request"

_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_SCISSORS = re.compile(r"^(?=\S -+ ?>8)", re.MULTILINE)
_SUBJECT_LIMIT = 72
_BODY_LIMIT = 8_000


@dataclass(frozen=True)
class Message:
    """What a commit says: subject, the session's own summary, and trailers as (name, value)."""

    subject: str
    summary: str
    trailers: Sequence[tuple[str, str]]

    def __str__(self) -> str:
        trailers = "\n".join(f"{name}: {_one_line(value)}" for name, value in self.trailers)
        # At a line of scissors git's own readers would take the message to end.
        body = clip(_SCISSORS.sub(" ", _clean(self.summary)).strip(), _BODY_LIMIT)
        return "\n\n".join(part for part in (self.subject, body, trailers) if part) + "\n"


def message(task: Task, summary: str, trailers: Sequence[tuple[str, str]]) -> Message:
    """The message of a task's commit, `<task id>: <title>`, at most 72 characters of subject."""
    subject = f"{task.task_id}: {_one_line(task.title)}"
    if len(subject) > _SUBJECT_LIMIT:
        subject = subject[: _SUBJECT_LIMIT - 1].rstrip() + "…"
    return Message(subject, summary, trailers)


def make_commit(git: Git, tree: str, parent: str, text: Message, capability: Capability) -> str:
    """Write the commit and point the trusted git directory's HEAD at it; its object id."""
    identity = {}
    for role in ("AUTHOR", "COMMITTER"):
        identity[f"GIT_{role}_NAME"] = capability.git_author_name
        identity[f"GIT_{role}_EMAIL"] = capability.git_author_email
    commit = git.text(
        "commit-tree", tree, "-p", parent, "-F", "-", stdin=str(text).encode("utf-8", "replace"), extra=identity
    )
    (git.git_dir / "HEAD").write_text(f"{commit}\n")
    return commit


def is_own(git: Git, base: str, head: str, capability: Capability) -> bool:
    """Whether every commit that `head` has and `base` has not was committed by this actor."""
    committers = git.text("log", "--format=%cn <%ce>", f"{base}..{head}").splitlines()
    return set(committers) <= {f"{capability.git_author_name} <{capability.git_author_email}>"}


class Change(NamedTuple):
    """A commit, and when it was made, in seconds since the epoch."""

    commit: str
    made: int


def last_change(git: Git, commit: str, path: str) -> Change:
    """The last commit up to this one that changed something below a path."""
    name, made = git.text("log", "-1", "--format=%H %ct", commit, "--", path).split()
    return Change(name, int(made))


def before_task(git: Git, commit: str, task_id: str, default: str) -> str:
    """The commit that a task's own commits, of which this is the last, go on from.

    What the default branch has at `default` was merged, and an attempt that goes on from there is another; unless
    this commit is there too.
    """
    beyond = set(git.text("rev-list", f"{default}..{commit}").split()) or None
    while (beyond is None or commit in beyond) and trailer(git, commit, TASK_TRAILER) == task_id:
        commit = git.text("rev-parse", "--verify", f"{commit}^").strip()
    return commit


def with_trailer(git: Git, commits: str, name: str, value: str) -> list[str]:
    """Those of a range's commits that have a trailer with this value, a word; the newest first."""
    found = git.text("log", "--format=%H", f"--grep=^{name}: {value}[[:space:]]*$", commits, "--").split()
    return [commit for commit in found if trailer(git, commit, name) == value]


def has(git: Git, commits: str, commit: str) -> bool:
    """Whether a commit is among those that lead up to another, `commits`."""
    return git.attempt("merge-base", "--is-ancestor", commit, commits).ok


def trailer(git: Git, commit: str, name: str) -> str:
    """The value of a trailer of a commit, or an empty string.

    It is looked for here and not by git, which ends a message at a line that says so (`>8`): a summary may hold one.
    """
    for paragraph in reversed(git.text("log", "-1", "--format=%B", commit).strip().split("\n\n")):
        lines = [line.partition(": ") for line in paragraph.splitlines()]
        if not all(colon and _TRAILER.fullmatch(key) for key, colon, _ in lines):
            break
        found = [value.strip() for key, _, value in lines if key == name]
        if found:
            return found[-1]
    return ""


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)
