"""Git, as typed verbs, with nothing in force that a repository or a user could have configured.

Hooks, filters, fsmonitor, external programs, system and user configuration are all off; a git
directory that this module is pointed at is one that only the actor writes. Lists of paths are
always NUL-separated. The login reaches git through a descriptor, see `Remote` and `secrets`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop, run
from foundry_implementation_actor.system.secrets import credential

LOGIN = "x-access-token"

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null", "core.autocrlf=false", "core.safecrlf=false", "core.fileMode=true",
    "core.symlinks=true", "core.quotePath=false", "core.logAllRefUpdates=false", "checkout.workers=0", "gc.auto=0",
    "maintenance.auto=false", "protocol.ext.allow=never", "protocol.file.allow=always",
    "submodule.recurse=false", "push.recurseSubmodules=no", "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false", "credential.helper=", "commit.gpgSign=false", "push.gpgSign=false",
)  # fmt: skip
_OUTPUT_LIMIT = 256 * 1024 * 1024


@dataclass(frozen=True)
class Remote:
    """A repository on a forge: its URL (no login in it) and the token for user `x-access-token`."""

    url: str
    token: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        """Scheme, host and port: where the token may be sent."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True)
class Git:
    """One git directory of the actor's own, with a work tree where a verb needs one.

    Every verb raises ActorError: UNFIT when git is missing, ran out of time or said no; STOPPED
    when `stop` was set. `environment` is what git needs of the host (PATH, proxies, certificates).
    """

    git_dir: Path
    environment: Mapping[str, str]
    timeout_s: float
    work_tree: Path | None = None
    stop: Stop | None = None

    def text(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> str:
        """Run git and return its stdout as text without its last newline."""
        return os.fsdecode(self.output(*arguments, stdin=stdin, extra=extra)).rstrip("\n")

    def output(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its stdout."""
        done = self.attempt(*arguments, stdin=stdin, extra=extra)
        if not done.ok:
            raise refusal_of(done, f"git {arguments[0]} failed")
        return done.stdout

    def records(self, *arguments: str, extra: Mapping[str, str] | None = None) -> list[str]:
        """Run git with NUL-separated output and return the records, undecodable bytes kept."""
        return [os.fsdecode(part) for part in self.output(*arguments, extra=extra).split(b"\0")[:-1]]

    def attempt(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> Completed:
        """Run git and return what came of it, whatever its exit code."""
        return self._run(arguments, stdin=stdin, extra=extra or {}, descriptors=(), settings=())

    def remotely(self, remote: Remote, *arguments: str) -> Completed:
        """Run a verb that talks to `remote`, with its login where it has one."""
        with authenticated(remote) as (settings, descriptors):
            return self._run(arguments, stdin=b"", extra={}, descriptors=descriptors, settings=settings)

    def _run(
        self, arguments: tuple[str, ...], *, stdin: bytes, extra: Mapping[str, str],
        descriptors: tuple[int, ...], settings: tuple[str, ...],
    ) -> Completed:  # fmt: skip
        options = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
        tree = [f"--work-tree={self.work_tree}"] if self.work_tree else []
        argv = ("git", f"--git-dir={self.git_dir}", *tree, "--literal-pathspecs", *options, *arguments)
        command = Command(
            argv, cwd=self.work_tree or self.git_dir, env={**self.environment, **_ENVIRONMENT, **extra},
            timeout_s=self.timeout_s, stdin=stdin, output_limit=_OUTPUT_LIMIT, pass_fds=descriptors,
        )  # fmt: skip
        done = run(command, self.stop)
        if done.ended is Ended.STOPPED:
            raise ActorError(Code.INTERRUPTED, f"git {arguments[0]} was stopped")
        if done.ended is Ended.TIMEOUT:
            raise ActorError(
                Code.UNFIT, f"git {arguments[0]} did not end within {self.timeout_s:g} s", hint="raise CLONE_TIMEOUT_S"
            )
        return done


_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "HOME": "/nonexistent",
}  # fmt: skip


def make_git_dir(
    path: Path, head: str, *, borrows: Path | None = None, packed_refs: str = "", bare: bool = False
) -> None:
    """A git directory from scratch: what `git init` makes, without starting a process.

    Args:
        path: must not exist.
        head: a commit, or `ref: refs/heads/…`.
        borrows: an object directory from which it takes what it does not have itself.
        packed_refs: the content of its `packed-refs`.
        bare: whether it has no tree.
    """
    for part in ("objects/info", "objects/pack", "refs/heads", "info"):
        (path / part).mkdir(parents=True)
    if borrows is not None:
        (path / "objects/info/alternates").write_text(f"{borrows}\n")
    form = f"\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {str(bare).lower()}\n"
    (path / "config").write_text(f"[core]\n{form}")
    (path / "packed-refs").write_text(packed_refs)
    (path / "HEAD").write_text(f"{head}\n")


@contextlib.contextmanager
def authenticated(remote: Remote) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """The settings and inherited descriptors that let git log in to this remote and no other."""
    if not remote.token:
        yield (), ()
        return
    with credential(LOGIN, remote.token) as descriptor:
        helper = f'!f() {{ test "$1" = get && cat /proc/self/fd/{descriptor}; }}; f'
        yield (f"credential.{remote.origin}.helper={helper}",), (descriptor,)


_NOT_FOUND = re.compile(r"not found|does not exist|does not appear to be a git repository", re.IGNORECASE)
_NOT_ALLOWED = re.compile(r"authentication failed|could not read (?:username|password)|error: 401", re.IGNORECASE)
_FORBIDDEN = re.compile(r"error: 403|permission .*denied|write access .*not granted", re.IGNORECASE)
_UNREACHABLE = re.compile(r"could not resolve|failed to connect|connection (?:refused|timed out|reset)", re.IGNORECASE)


def refusal_of(done: Completed, what: str, remote: Remote | None = None) -> ActorError:
    """What git's stderr means to the person who runs the actor."""
    where = remote.url if remote else ""
    nobody_there, look = "there is no such repository", "check GIT_BASE_URL and source_repo"
    if not where.startswith("file:"):
        nobody_there, look = f"{nobody_there}, or GITHUB_TOKEN may not see it", f"{look}, and the token's rights"
    for pattern, message, hint in (
        (_NOT_ALLOWED, "the forge does not accept GITHUB_TOKEN", "give a token that is valid there"),
        (_FORBIDDEN, "GITHUB_TOKEN has no right to write there", "give it contents:write on this repository"),
        (_NOT_FOUND, nobody_there, look),
        (_UNREACHABLE, "the forge cannot be reached", "check GIT_BASE_URL and the network"),
    ):
        if remote is not None and pattern.search(done.errors):
            return ActorError(Code.UNFIT, f"{what}: {message}", hint=hint, where=where)
    said = " / ".join(done.errors.splitlines()[-4:]) or f"exit {done.code}"
    return ActorError(Code.UNFIT, f"{what}: {said}", where=where)
