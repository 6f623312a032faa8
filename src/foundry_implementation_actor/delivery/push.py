"""The branch on the forge: pushed with a lease, read back, never over somebody else's work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from foundry_implementation_actor.domain.command import Completed
from foundry_implementation_actor.system.git import Git, Remote, refusal_of

_REJECTED = re.compile(r"^!\t[^\t]*\t\[(?:remote )?rejected\] \((?P<why>[^)]*)\)", re.MULTILINE)


class Pushed(StrEnum):
    """How a push ended; anything else is an ActorError."""

    DONE = "done"
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
        return PushEnd(Pushed.DONE if _remote_commit(git, remote, ref) == commit else Pushed.MOVED)
    rejected = _REJECTED.search(done.text)
    if rejected is None:
        raise refusal_of(done, "the branch cannot be pushed", remote)
    if (
        rejected["why"] in {"stale info", "fetch first", "non-fast-forward"}
        or _remote_commit(git, remote, ref) != expected
    ):
        return PushEnd(Pushed.MOVED, rejected["why"])
    return PushEnd(Pushed.DECLINED, _said(done, rejected["why"]))


def _remote_commit(git: Git, remote: Remote, ref: str) -> str:
    done = git.remotely(remote, "ls-remote", remote.url, ref)
    if not done.ok:
        raise refusal_of(done, "the branch cannot be read back", remote)
    return done.text.partition("\t")[0]


def _said(done: Completed, why: str) -> str:
    """What the forge printed, which is where a hook says its reason."""
    lines = [line.removeprefix("remote:").strip() for line in done.errors.splitlines() if line.startswith("remote:")]
    return f"{why}: {' '.join(filter(None, lines))}" if any(lines) else why
