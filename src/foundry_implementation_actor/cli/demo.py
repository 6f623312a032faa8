"""`demo`: the whole path on one machine, shown to a person or told as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path

import click

from foundry_implementation_actor.cli.main import PACKAGE
from foundry_implementation_actor.cli.progress import told
from foundry_implementation_actor.demo.actor import Record, Reply, sandbox_word
from foundry_implementation_actor.demo.host import check_host
from foundry_implementation_actor.demo.stage import Stage, set_up
from foundry_implementation_actor.demo.story import Outcome, tell
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED, MEANINGS, ActorError, Code

_EPILOG = """\b
Examples:
  foundry-implementation-actor demo
  foundry-implementation-actor demo --keep /tmp/look-at-it
  foundry-implementation-actor demo --json
  ANTHROPIC_API_KEY=… foundry-implementation-actor demo --engine claude-code

\b
Exit codes: 0 all went as told, 1 a real model did otherwise, 3 this host
is not fit, 4 the demo itself went otherwise (a bug), 130 interrupted.
"""


@click.command(epilog=_EPILOG)
@click.option("--engine", type=click.Choice(["scripted", "claude-code"]), default="scripted", show_default=True,
              help="What works: a script, or the real CLI with your login, at your cost.")  # fmt: skip
@click.option(
    "--keep", metavar="DIR", type=click.Path(path_type=Path), help="Play in this new or empty folder and keep it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end and nothing else.")
def demo(engine: str, keep: Path | None, as_json: bool) -> int:
    """See the whole path on a small repository of its own.

    A git forge and the actor start on loopback. A peer asks both doors: whether
    a task can be delivered, then for the task; the first attempt reaches for what
    is not its own and is refused, the second becomes a branch. Nothing stays behind.
    """
    # Ended by another program, the demo cleans up as it does for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    environ = dict(os.environ)
    path = environ.get("PATH") or os.defpath
    check_host(engine, environ, path)
    with _folder(keep) as folder:
        stage = set_up(folder, path)
        outcome = tell(stage, engine, environ, _Silence() if as_json else _Screen())
        if as_json:
            kept = str(folder) if keep else None
            click.echo(json.dumps({"ok": not outcome.wrong, **asdict(outcome), "kept": kept}, ensure_ascii=False))
        else:
            _show_end(outcome, stage, kept=keep is not None)
    return _exit_code(outcome)


def _exit_code(outcome: Outcome) -> int:
    if not outcome.wrong:
        return EXIT_DELIVERED
    return MEANINGS[Code.BUG].exit_code if outcome.engine == "scripted" else EXIT_REFUSED


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="foundry-demo-") as temporary:
            yield Path(temporary).resolve()
        return
    if "{" in str(keep.resolve()):
        hint = "a sidecar takes braces for a placeholder; name another folder"
        raise ActorError(Code.BAD_REQUEST, "has a brace in its path", hint=hint, where=str(keep))
    try:
        keep.mkdir(parents=True, exist_ok=True)
        taken = any(keep.iterdir())
    except OSError as error:
        raise ActorError(Code.BAD_REQUEST, f"cannot be used: {error.strerror}", where=str(keep)) from error
    if taken:
        raise ActorError(Code.BAD_REQUEST, "is not empty", hint="name a new or an empty folder", where=str(keep))
    yield keep.resolve()


class _Screen:
    """Shows the story on stdout, step by step."""

    def __init__(self) -> None:
        self._number = 0

    def step(self, title: str) -> None:
        self._number += 1
        click.secho(f"\n{self._number}. {title}", bold=True)

    def tell(self, text: str) -> None:
        for line in text.splitlines():
            click.echo(f"   {_painted(line)}")

    def record(self, record: Record) -> None:
        text = told(record)
        if text:
            click.echo(f"     {text}")

    def reply(self, reply: Reply) -> None:
        click.secho(f"   {reply}", fg="green" if reply.status == HTTPStatus.OK else "red")


class _Silence:
    """Shows nothing: the outcome is printed at the end."""

    def step(self, title: str) -> None: ...
    def tell(self, text: str) -> None: ...
    def record(self, record: Record) -> None: ...
    def reply(self, reply: Reply) -> None: ...


def _painted(line: str) -> str:
    """A line of a diff in its colour; other lines as they are."""
    color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return click.style(line, fg=color) if color else line


def _show_end(outcome: Outcome, stage: Stage, *, kept: bool) -> None:
    if outcome.wrong:
        click.secho(f"\nwent otherwise: {outcome.wrong}", fg="red", bold=True)
    else:
        click.secho(f"\nAll went as told, in {outcome.seconds:.1f} s.", fg="green", bold=True)
    click.echo(_where(stage, outcome) if kept else "Nothing is left of it. To look at it afterwards: demo --keep DIR")


def _where(stage: Stage, outcome: Outcome) -> str:
    """What is where in the kept folder, and what to do with it."""
    repository, instance = shlex.quote(str(stage.repository)), shlex.quote(str(stage.instance))
    tasks, again = shlex.quote(str(stage.folder / "tasks")), _again(stage, outcome.engine)
    return f"""
Kept in {stage.folder}:
  instance/      the sidecar that makes this actor
  tasks/         what the peer asked
  session.yaml   what the scripted sessions did
  knowledge/     what the sessions were grounded in
  forge/         the repository, bare
  pushed/        its files before and after
  state/         the actor's mirror

Look at the branch:
  git -C {repository} show {outcome.branch or "main"}
Ask again, without a server:
  {again} assess {instance} --task {tasks}/assess.yaml
  {again} implement {instance} --task {tasks}/again.json"""


def _again(stage: Stage, engine: str) -> str:
    """The command line of this program, with the settings that the demo's actor had."""
    settings = {
        "GIT_BASE_URL": stage.forge.as_uri(),
        "ACTOR_STATE": str(stage.folder / "state"),
        "SESSION_ENGINE": engine,
        "SESSION_SCRIPT": str(stage.script),
        "SANDBOX": sandbox_word(os.environ),
        "IMAGES": "off",
    }
    program = PACKAGE if shutil.which(PACKAGE) else f"{shlex.quote(sys.executable)} -m foundry_implementation_actor.cli"
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in settings.items()), program])
