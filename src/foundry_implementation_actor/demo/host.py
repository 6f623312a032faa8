"""What the demo needs of the host it is played on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from foundry_implementation_actor.actor.examine import engine as engine_findings
from foundry_implementation_actor.actor.examine import readable_settings, unusable
from foundry_implementation_actor.actor.fitness import asked, containment, git, serving, temporary_folder
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.fitness import Finding, State


def check_host(engine: str, environ: Mapping[str, str], path: str) -> None:
    """See that the demo can be played.

    Args:
        engine: `scripted` or `claude-code`.
        environ: the user's environment, in which a real model's login is looked for.
        path: where programs are found.

    Raises:
        ActorError: UNFIT with the first thing that is missing and what mends it.
    """
    for finding in _needed(engine, environ, path):
        if finding.stops or (finding.subject == "serve extra" and finding.state is not State.OK):
            raise ActorError(Code.UNFIT, f"{finding.subject}: {finding.seen}", hint=finding.mend)


def _needed(engine: str, environ: Mapping[str, str], path: str) -> Iterator[Finding]:
    yield from (temporary_folder(), git(path), _git_server(path), containment(), serving())
    if engine == "claude-code":
        chosen = {**environ, "PATH": path, "SESSION_ENGINE": engine}
        yield from unusable(chosen)
        yield from engine_findings(readable_settings(chosen))


def _git_server(path: str) -> Finding:
    done = asked(path, "git", "--exec-path")
    if done and Path(done.text.strip(), "git-http-backend").exists():
        return Finding("git http-backend", State.OK, "is there")
    mend = "install all of git (Alpine: apk add git-daemon)"
    return Finding("git http-backend", State.MISSING, "this git cannot serve a repository over HTTP", mend)
