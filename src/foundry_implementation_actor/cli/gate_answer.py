"""What the commands of `gate` share: their options, opening the gate, and showing an answer."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
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
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Command(click.Command):
    """A command whose answer is a dict on stdout with --json, also when its words are wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command's words."""
        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not as_json:
                raise
            hint = f"see {ctx.command_path} --help"
            wrong = ActorError(Code.BAD_REQUEST, error.format_message().rstrip("."), hint=hint)
            click.echo(json.dumps(error_answer(wrong)))
            ctx.exit(wrong.meaning.exit_code)


def gate_command(name: str, show: Show, show_no: Show | None = None) -> Callable[[Asked], click.Command]:
    """Make a command of a function that takes a gate and the command's own arguments, and gives an answer.

    `show` prints a good answer for a person, `show_no` a refusal; without it a refusal says that nothing
    was changed. The options --app and --json are added.
    """
    shows = (show, show_no or _show_unchanged)

    def made(asked: Asked) -> click.Command:
        @wraps(asked)
        def command(app: Path | None, as_json: bool, **arguments: Any) -> int:
            with _stoppable():
                return _answered(lambda: asked(open_gate(app, as_json=as_json), **arguments), shows, as_json=as_json)

        command = click.option("--json", "as_json", is_flag=True, help="Print the answer alone, as JSON.")(command)
        command = click.option(
            "--app", metavar="ROOT", type=click.Path(path_type=Path), help="A folder of the app; default: the current."
        )(command)
        return click.command(name, cls=_Command)(command)

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


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """A termination or a closed terminal ends a command as Ctrl-C does, so that what it began is undone.

    Without namespaces a body that nobody judged would stay in its place until the next command.
    """
    ending = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for one in ending:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one in ending:
            signal.signal(one, signal.SIG_DFL)


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
        (good if answer["ok"] or "findings" in answer else no)(_visible(answer))
    return exit_code(answer)


def _visible(value: Any) -> Any:
    """An answer whose texts do nothing to a terminal: judged code may have put anything in them."""
    if isinstance(value, str):
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
    if isinstance(value, Mapping):
        return {key: item if key == "content" else _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value


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
