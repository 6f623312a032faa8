"""A forge on loopback with one capability repository, and actors that play scripts against it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from foundry_implementation_actor.actor.boot import answer_once
from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.demo.git_http import GitServer
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.engines.script import FORMAT
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from support.repos import CAPABILITY_FILES, IMAGE_TAGS, SIDECAR, Files, Repo, capability_repo

TOKEN = "tok-7f3a9c2e51d84b60"
READER = "reader-0d44aa81c3"
BRANCH = "impl/TASK-1"

Step = dict[str, Any]
Reply = dict[str, Any]
Started = subprocess.Popen[str]


def task(**fields: Any) -> dict[str, Any]:
    """A payload that both doors take; `fields` replace or add."""
    return {"task_id": "TASK-1", "title": "Add a discount", "definition_of_done": ["It is there"], **fields}


def question(**fields: Any) -> dict[str, Any]:
    """A payload of `assess-task`."""
    return task(acceptance_surface=[{"id": "E1", "expectation": "it works"}], **fields)


def write(path: str, content: str = "x = 1\n") -> Step:
    """A step that writes a file."""
    return {"write": {"path": path, "content": content}}


def shell(line: str) -> Step:
    """A step that runs a line."""
    return {"shell": line}


class Place:
    """A bare repository behind `git http-backend` and a token, a state directory, and what was recorded.

    Args:
        base: an empty directory for all of it.
        files: what the repository's first commit holds besides the sidecar.
        sidecar: the text of its sidecar.
        tags: the tags on that commit.
        token: reads and pushes.
        local: reach the repository by path instead of over HTTP; twice as fast, where HTTP is not the point.
        settings: environment variables of every actor here.
    """

    def __init__(
        self,
        base: Path,
        *,
        files: Files = CAPABILITY_FILES,
        sidecar: str = SIDECAR,
        tags: tuple[str, ...] = IMAGE_TAGS,
        token: str = TOKEN,
        local: bool = False,
        settings: Mapping[str, str] = {},
    ) -> None:
        self.base = base
        self.state = base / "state"
        self.folder = base / "instance"
        self.folder.mkdir(parents=True)
        (self.folder / "actor-agentic-context.yaml").write_text(sidecar)
        self.repo = capability_repo(base / "forge", files=files, sidecar=sidecar, tags=tags)
        self.server = GitServer(base / "forge", token, read_only_token=READER)
        self.records: list[dict[str, Any]] = []
        self.on_record: Callable[[dict[str, Any]], None] = lambda _: None
        forge = f"file://{base}/forge" if local else self.server.url
        self._settings = {"GIT_BASE_URL": forge, "GITHUB_TOKEN": token, **settings}
        self._scripts = 0

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.__exit__(*exc)
        assert not self.server.errors

    @property
    def config(self) -> CapabilityConfig:
        """The sidecar of the actors here, as it is now."""
        return CapabilityConfig.load(self.folder)

    def environment(self, *sessions: Step, **settings: str) -> dict[str, str]:
        """The environment of an actor that plays these steps, or these whole sessions, each a mapping."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "ACTOR_STATE": str(self.state),
            "SESSION_ENGINE": "scripted",
            "SESSION_SCRIPT": str(self._script(sessions)),
            "IMAGES": "off",
            # What these runs show is what the actor does with whatever a session leaves. In a sandbox most of it
            # could not be left, and its processes have ids of their own; tests/sandbox and tests/e2e run held.
            "SANDBOX": "none",
            **self._settings,
            **settings,
        }

    def engine(self, *steps: Step, **settings: str) -> ClaudeCodeEngine:
        """A freshly started actor's engine that plays these steps in every session."""
        settings_read = Settings.from_env(self.environment(*steps, **settings))
        return ClaudeCodeEngine(self.config, settings=settings_read, sink=self._keep)

    def command(
        self, door: str, *options: str, steps: tuple[Step, ...] = (), under: tuple[str, ...] = (), **settings: str
    ) -> Started:
        """Start the command line as a process of its own: its door, options and, for a door, a task file.

        `under` are words before the whole command, of a program that starts another.
        """
        task_file = self.base / "task.json"
        task_file.write_text(json.dumps(question() if door == "assess" else task()))
        asked = ["--task", str(task_file)] if door in {"assess", "implement"} else []
        main = "from foundry_implementation_actor.cli.main import main; raise SystemExit(main())"
        return subprocess.Popen(
            [*under, sys.executable, "-c", main, door, str(self.folder), *asked, *options],
            env=self.environment(*steps, **settings), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def call_later(self, port: int) -> Callable[[], tuple[int, dict[str, Any]]]:
        """Put the task to a served actor now; what is returned waits for the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/implement-task", json.dumps({"from": "tester", "payload": task()}))

        def answer() -> tuple[int, dict[str, Any]]:
            with contextlib.closing(connection):
                response = connection.getresponse()
                return response.status, json.loads(response.read())

        return answer

    def run(self, *steps: Step, settings: Mapping[str, str] | None = None, **fields: Any) -> Reply:
        """Start an actor, have one task done by a session of these steps, and return the reply."""
        return self.ask(self.engine(*steps, **(settings or {})), **fields)

    def ask(self, engine: ClaudeCodeEngine, **fields: Any) -> Reply:
        """Put one task to a running actor."""
        return answer_once(self.folder, self.config, engine, Door.IMPLEMENT, task(**fields))

    def assess(self, *steps: Step, settings: Mapping[str, str] | None = None, **fields: Any) -> Reply:
        """Start an actor and ask whether a task can be done."""
        engine = self.engine(*steps, **(settings or {}))
        return answer_once(self.folder, self.config, engine, Door.ASSESS, question(**fields))

    def refused(self, *steps: Step, **how: Any) -> str:
        """As `run`, for a task that must be refused without a trace on the forge: the reason."""
        before = self.repo.branches()
        reply = self.run(*steps, **how)
        assert reply["accepted"] is False, reply
        assert self.repo.branches() == before
        return str(reply["because"])

    def landed(self, *steps: Step, **how: Any) -> Landed:
        """As `run`, for a task that must be accepted: its branch on the forge."""
        reply = self.run(*steps, **how)
        assert reply["accepted"] is True, reply
        return Landed(self.repo, str(reply["branch"]))

    def recorded(self, step: str, phase: str = "") -> list[dict[str, Any]]:
        """The records of one kind, of all actors here."""
        return [r for r in self.records if r.get("step") == step and (not phase or r.get("phase") == phase)]

    @property
    def session_ran(self) -> bool:
        """Whether any session was started."""
        return bool(self.recorded("session", "start"))

    @property
    def told(self) -> str:
        """What the sessions' tools answered, all together."""
        return "\n".join(record["text"] for record in self.recorded("session-tool-result"))

    def _script(self, sessions: tuple[Any, ...]) -> Path:
        self._scripts += 1
        path = self.base / f"script-{self._scripts}.json"
        whole = bool(sessions) and "steps" in sessions[0]
        listed = list(sessions) if whole else [{"steps": list(sessions)}]
        path.write_text(json.dumps({"script": FORMAT, "sessions": listed}))
        return path

    def _keep(self, line: str, _: Mapping[str, str]) -> None:
        record = json.loads(line)
        self.records.append(record)
        self.on_record(record)


class Landed:
    """A branch that was pushed, compared with its commit's parent."""

    def __init__(self, repo: Repo, branch: str) -> None:
        self._repo = repo
        self.branch = branch
        self.commit = repo.sha(f"refs/heads/{branch}")
        self.parent = repo.sha(f"{self.commit}^1")

    @property
    def changes(self) -> dict[str, str]:
        """Path to what happened to it: A, D, M or T."""
        raw = self._repo.git("diff-tree", "-r", "-z", "--no-renames", "--name-status", self.parent, self.commit)
        words = raw.split("\0")[:-1]
        return dict(zip(words[1::2], words[::2], strict=True))

    @property
    def message(self) -> str:
        """The commit's message."""
        return self._repo.git("show", "-s", "--format=%B", self.commit)

    def mode(self, path: str) -> str:
        """A path's mode, six octal digits."""
        return self._repo.git("--literal-pathspecs", "ls-tree", self.commit, path).split()[0]

    def read(self, path: str) -> str:
        """A file's text, undecodable bytes kept."""
        return self._repo.read(path, self.commit)
