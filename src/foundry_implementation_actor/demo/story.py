"""What the demo tells: a question, an attempt that is refused, and one that becomes a branch."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from foundry_implementation_actor.demo.actor import Record, Reply, RunningActor, settings_for
from foundry_implementation_actor.demo.git_http import GitServer
from foundry_implementation_actor.demo.stage import MAIN, Stage
from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.system.process import run_contained

_CHECK_TIMEOUT_S = 60.0


class Audience(Protocol):
    """Whoever follows the demo while it runs."""

    def step(self, title: str) -> None:
        """A step of the story begins."""

    def tell(self, text: str) -> None:
        """Something that is so; may have several lines."""

    def record(self, record: Record) -> None:
        """A record of the actor."""

    def reply(self, reply: Reply) -> None:
        """What a door answered."""


@dataclass
class Outcome:
    """What happened, for whoever was not there. `wrong` is empty when all went as told."""

    engine: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    branch: str = ""
    diff: str = ""
    images: str = "not published: images are off in the demo"
    seconds: float = 0.0
    wrong: str = ""


class _Otherwise(Exception):  # noqa: N818 - a turn of the story, not a fault
    """Something did not go as the demo tells it."""


def tell(stage: Stage, engine: str, environ: Mapping[str, str], audience: Audience) -> Outcome:
    """Play the demo on a stage, to its end or to where it goes otherwise.

    Args:
        stage: where it plays.
        engine: `scripted` or `claude-code`.
        environ: the user's environment; a real model's login is taken from it.
        audience: is told each step while it happens.

    Raises:
        ActorError: the actor did not start, or ended before it had answered.
    """
    token, outcome = secrets.token_urlsafe(24), Outcome(engine)
    story = _Story(stage, outcome, audience)
    began = time.monotonic()
    try:
        with GitServer(stage.forge, token) as forge, TemporaryDirectory(dir=stage.folder) as temporary:
            story.show_repository(forge.url)
            settings = settings_for(stage, engine, environ)
            settings |= {"GIT_BASE_URL": forge.url, "GITHUB_TOKEN": token, "TMPDIR": temporary}
            with story.started(RunningActor(stage, settings, audience.record)) as actor:
                _play(story, actor)
    except _Otherwise as otherwise:
        outcome.wrong = str(otherwise)
    outcome.seconds = round(time.monotonic() - began, 2)
    return outcome


def _play(story: _Story, actor: RunningActor) -> None:
    story.ask_first(actor)
    task = story.stage.task("implement")
    if story.outcome.engine == "scripted":
        task["remediation_context"] = story.refused_attempt(actor, task)
    else:
        story.audience.step("A refused attempt is left out")
        story.audience.tell(
            "a session that reaches too far is staged with the scripted engine only; a model does its own"
        )
    story.stage.keep_task("again", task)
    story.accepted_attempt(actor, task)
    story.show_branch()


@dataclass(frozen=True)
class _Story:
    """The steps, each of which adds to the outcome or ends the story with `_Otherwise`."""

    stage: Stage
    outcome: Outcome
    audience: Audience

    def show_repository(self, url: str) -> None:
        config, tell = self.stage.config, self.audience.tell
        with self._step("A capability's repository, behind a token"):
            tell(f"{config.capability}: components {', '.join(config.writes_only_under)}")
            tell(f"real git over HTTP at {url}/{config.source_repo}.git")
            done = self._run(self.stage.files_of(MAIN), self.stage.acceptance)
            self._hold(
                "AssertionError: E1" in done.errors, f"the acceptance check is not red for E1: {done.errors[-500:]}"
            )
            tell("what the peer wants is not there yet: its acceptance check is red")

    @contextmanager
    def started(self, actor: RunningActor) -> Iterator[RunningActor]:
        """The actor as it runs; only its start is a step."""
        with ExitStack() as running:
            with self._step("The actor starts: `serve` with one sidecar, as a process of its own"):
                running.enter_context(actor)
                self.audience.tell(f"listens on 127.0.0.1:{actor.port}")
            yield actor

    def ask_first(self, actor: RunningActor) -> None:
        with self._step("A peer asks assess-task whether it may count on TASK-7"):
            reply = self._call(actor, Door.ASSESS, self.stage.task("assess"))
            self._hold(
                reply.status == 200 and reply.body["feasible"] is True, f"the task was not called feasible: {reply}"
            )
            self._hold(bool(reply.body.get("commitments")), f"nothing was committed to: {reply}")

    def refused_attempt(self, actor: RunningActor, task: Mapping[str, Any]) -> str:
        """Why the attempt was refused."""
        with self._step("It asks implement-task; the session reaches for the README and a protected file"):
            reply = self._call(actor, Door.IMPLEMENT, task)
            refused = reply.status == 200 and reply.body["accepted"] is False
            self._hold(
                refused and "Dockerfile: is protected" in reply.body["because"],
                f"the change of a protected file was not refused: {reply}",
            )
            branches = self.stage.branches()
            self._hold(branches == [MAIN], f"something was pushed: {', '.join(branches)}")
            self.audience.tell(f"nothing was pushed: the forge has the branch {MAIN} and no other")
        return str(reply.body["because"])

    def accepted_attempt(self, actor: RunningActor, task: Mapping[str, Any]) -> None:
        again = " again, with what was wrong as remediation_context" if "remediation_context" in task else ""
        with self._step(f"It asks implement-task{again}"):
            reply = self._call(actor, Door.IMPLEMENT, task)
            self._hold(reply.status == 200 and reply.body["accepted"] is True, f"the task was not delivered: {reply}")
            self.outcome.branch = str(reply.body["branch"])
            self._hold(reply.body["images"] == [], f"images were published although they are off: {reply}")
            self.audience.tell("no image was published: images are off in the demo")

    def show_branch(self) -> None:
        """The diff of the pushed branch, and what its files do."""
        branch = self.outcome.branch
        with self._step(f"What {branch} holds on the forge"):
            self._hold(branch in self.stage.branches(), f"the forge has no branch {branch}")
            self.outcome.diff = self.stage.git.text("show", "--no-color", branch)
            self.audience.tell(self.outcome.diff)
            files = self.stage.files_of(branch)
            tests = self._run(files, "-m", "unittest", "discover", "--start-directory", "backend")
            self._hold(tests.ok, f"the branch's own tests are red: {tests.errors[-500:]}")
            done = self._run(files, self.stage.acceptance)
            self._hold(done.ok, f"the acceptance check is still red: {done.errors[-500:]}")
            self.audience.tell("its own tests and the peer's acceptance check are green on these files")

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self.audience.step(title)
        began, ok = time.monotonic(), False
        try:
            yield
            ok = True
        finally:
            self.outcome.steps.append({"step": title, "ok": ok, "seconds": round(time.monotonic() - began, 2)})

    def _call(self, actor: RunningActor, door: Door, payload: Mapping[str, Any]) -> Reply:
        self.audience.tell(f"POST /{door}")
        reply = actor.call(door, payload)
        self.outcome.calls.append(
            {"door": door.value, "payload": dict(payload), "status": reply.status, "reply": reply.body}
        )
        self.audience.reply(reply)
        return reply

    def _hold(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise _Otherwise(otherwise)

    def _run(self, files: Path, *arguments: str) -> Completed:
        """Run Python in a folder with a branch's files, as the peer does."""
        environment = {"PATH": self.stage.path, "PYTHONPATH": "backend", "PYTHONDONTWRITEBYTECODE": "1"}
        command = Command((sys.executable, *arguments), cwd=files, env=environment, timeout_s=_CHECK_TIMEOUT_S)
        return run_contained(command)
