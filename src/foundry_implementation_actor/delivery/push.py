"""The branch on the forge: pushed with a lease, read back, never over somebody else's work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from foundry_implementation_actor.domain.command import Completed
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.system.git import Git, Remote, refusal_of

_REJECTED = re.compile(r"^!\t[^\t]*\t\[(?:remote )?rejected\] \((?P<why>[^)]*)\)", re.MULTILINE)


class Pushed(StrEnum):
    """How a push ended; anything else is an ActorError. Only with the first two did the forge take it."""

    DONE = "done"
    OVERTAKEN = "overtaken"
    MOVED = "moved"
    DECLINED = "declined"


@dataclass(frozen=True)
class PushEnd:
    """The end of a push, and what the forge said when it declined."""

    pushed: Pushed
    said: str = ""


def check_push(git: Git, remote: Remote, branch: str, commit: str) -> None:
    """Ask the forge whether this login may push, without sending anything.

    Raises:
        ActorError: UNFIT when the login is refused or the forge cannot be reached.
    """
    refspec = f"{commit}:refs/heads/{branch}"
    done = git.remotely(remote, "push", "--dry-run", "--porcelain", "--force", "--no-verify", remote.url, refspec)
    if not done.ok:
        raise refusal_of(done, "the branch cannot be pushed", remote)


def push(git: Git, remote: Remote, branch: str, commit: str, expected: str) -> PushEnd:
    """Push a commit to a branch that must still be at `expected` (empty: must not exist).

    The remote's ref is read back: DONE means that it names this commit.

    Raises:
        ActorError: UNFIT when the login is refused or the forge cannot be reached.
    """
    ref = f"refs/heads/{branch}"
    done = git.remotely(
        remote,
        "push",
        "--porcelain",
        "--no-verify",
        f"--force-with-lease={ref}:{expected}",
        remote.url,
        f"{commit}:{ref}",
    )
    if done.ok:
        return PushEnd(Pushed.DONE if _read_back(git, remote, branch, commit) == commit else Pushed.OVERTAKEN)
    rejected = _REJECTED.search(done.text)
    if rejected is None:
        raise refusal_of(done, "the branch cannot be pushed", remote)
    if (
        rejected["why"] in {"stale info", "fetch first", "non-fast-forward"}
        or remote_commit(git, remote, branch) != expected
    ):
        return PushEnd(Pushed.MOVED, rejected["why"])
    return PushEnd(Pushed.DECLINED, _said(done, rejected["why"]))


def remote_commit(git: Git, remote: Remote, branch: str) -> str:
    """The commit at which a branch is on the forge; empty when it is not there.

    Raises:
        ActorError: UNFIT when the forge cannot be reached.
    """
    done = git.remotely(remote, "ls-remote", remote.url, f"refs/heads/{branch}")
    if not done.ok:
        raise refusal_of(done, "the branch cannot be read back", remote)
    return done.text.partition("\t")[0]


def branches_in_the_way(git: Git, remote: Remote, branch: str) -> list[str]:
    """The forge's branches beside which this one cannot exist: a part of its name, or one that goes on from it.

    Raises:
        ActorError: UNFIT when the forge cannot be reached.
    """
    parents = [f"refs/heads/{parent}" for parent in map(str, PurePosixPath(branch).parents) if parent != "."]
    done = git.remotely(remote, "ls-remote", remote.url, *parents, f"refs/heads/{branch}/*")
    if not done.ok:
        raise refusal_of(done, "the branches cannot be read", remote)
    names = [line.partition("\t")[2].removeprefix("refs/heads/") for line in done.text.splitlines()]
    return [name for name in names if branch.startswith(f"{name}/") or name.startswith(f"{branch}/")]


def _read_back(git: Git, remote: Remote, branch: str, commit: str) -> str:
    try:
        return remote_commit(git, remote, branch)
    except ActorError as error:
        said = f"the branch {branch} was pushed at {commit[:12]}, but {error.message}"
        raise ActorError(error.code, said, hint=error.hint, where=error.where) from error


def _said(done: Completed, why: str) -> str:
    """What the forge printed, which is where a hook says its reason."""
    lines = [line.removeprefix("remote:").strip() for line in done.errors.splitlines() if line.startswith("remote:")]
    return f"{why}: {' '.join(filter(None, lines))}" if any(lines) else why
