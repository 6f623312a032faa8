"""What the commands of `gate` share: their options, opening the gate, and showing an answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click

from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED, MEANINGS, ActorError, Code
from foundry_implementation_actor.gate.answer import REFUSED, Answer, error_answer, size
from foundry_implementation_actor.gate.app import SEARCH_PATH
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.system.secrets import SECRET_VARIABLES, redactor

Asked = Callable[..., Answer]
Show = Callable[[Mapping[str, Any]], None]

_MOST_READ = 16 * 1024 * 1024


def gate_command(name: str, show: Show, show_no: Show | None = None) -> Callable[[Asked], click.Command]:
    """Make a command of a function that takes a gate and the command's own arguments, and gives an answer.

    `show` prints a good answer for a person, `show_no` a refusal; without it a refusal says that nothing
    was changed. The options --app and --json are added.
    """
    shows = (show, show_no or _show_unchanged)

    def made(asked: Asked) -> click.Command:
        @wraps(asked)
        def command(app: Path | None, as_json: bool, **arguments: Any) -> int:
            return _answered(lambda: asked(open_gate(app, as_json=as_json), **arguments), shows, as_json=as_json)

        command = click.option("--json", "as_json", is_flag=True, help="Print the answer alone, as JSON.")(command)
        command = click.option(
            "--app", metavar="ROOT", type=click.Path(path_type=Path), help="A folder of the app; default: the current."
        )(command)
        return click.command(name)(command)

    return made


def open_gate(app: Path | None, *, as_json: bool) -> Gate:
    """The gate of the app around a folder.

    Raises:
        ActorError: no app is there, or its `gate.yaml` has faults.
    """
    environ = dict(os.environ)
    house = House.open(app or Path.cwd(), search_path=environ.get("PATH") or SEARCH_PATH)
    secrets = [environ[name] for name in SECRET_VARIABLES if environ.get(name)]
    quiet = as_json or not sys.stderr.isatty()
    return Gate(house, redact=redactor(secrets), notice=_silent if quiet else _tell)


def content_of(path: str) -> bytes:
    """The bytes of a file, or of stdin for `-`.

    Raises:
        ActorError: BAD_REQUEST when it cannot be read, TOO_LARGE when no gate could take it.
    """
    try:
        if path == "-":
            content = sys.stdin.buffer.read(_MOST_READ + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(_MOST_READ + 1)
    except OSError as error:
        raise ActorError(Code.BAD_REQUEST, f"cannot be read: {error.strerror}", where=path) from error
    if len(content) > _MOST_READ:
        raise ActorError(Code.TOO_LARGE, "is larger than 16 MiB", where=path)
    return content


def exit_code(answer: Mapping[str, Any]) -> int:
    """The exit code for an answer."""
    if answer["ok"]:
        return EXIT_DELIVERED
    code = answer.get("code", REFUSED)
    return EXIT_REFUSED if code == REFUSED else MEANINGS[Code(code)].exit_code


def show_landing(answer: Mapping[str, Any]) -> None:
    """A landing, a batch, or a section that was staged."""
    if "sections" in answer:
        click.echo(f"staged {answer['plugin']}.{answer['class']}: {size(answer)}")
        click.echo("nothing is judged before finish")
    for body in answer.get("bodies", [answer] if "file" in answer else []):
        click.echo(f"{click.style('landed', fg='green')}  {body['file']}  ({body['plugin']}.{body['class']})")
        click.echo(f"judged  {body['verified']}")
    for note in answer.get("notes", ()):
        click.echo(f"note    {note}")


def _answered(ask: Callable[[], Answer], shows: tuple[Show, Show], *, as_json: bool) -> int:
    try:
        answer = ask()
    except ActorError as error:
        if not as_json:
            raise
        answer = error_answer(error)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=True))
    else:
        good, no = shows
        (good if answer["ok"] or "findings" in answer else no)(answer)
    return exit_code(answer)


def show_refused(answer: Mapping[str, Any], word: str = "refused") -> None:
    """Why not, behind a word for it; what could not be judged has a word of its own."""
    if answer.get("code", REFUSED) != REFUSED:
        word = "not judged"
    head, _, rest = str(answer["error"]).removeprefix("refused ").partition("\n")
    click.echo(f"{click.style(word, fg='red', bold=True)}  {head}")
    for line in rest.splitlines():
        click.echo(f"  {line}")


def _show_unchanged(answer: Mapping[str, Any]) -> None:
    show_refused(answer)
    click.echo("nothing was changed")


def _tell(line: str) -> None:
    click.echo(f"{line} ...", err=True)


def _silent(_: str) -> None:
    return
