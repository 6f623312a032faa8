"""The entry point: the table of commands, and the one place where an error becomes an exit code.

Imports inside functions are deliberate in this floor: a command's module is imported only when it
is called, so that `--help` costs little more than the interpreter.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from foundry_implementation_actor.domain.error import MEANINGS, ActorError, Code

PACKAGE = "foundry-implementation-actor"

# Wider than the settings' own secrets: a tool that fetches knowledge may be given a token of its own.
_SECRET_NAME = re.compile("TOKEN|KEY|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_EXIT_PIPE = 128 + signal.SIGPIPE
_EPILOG = """\b
Examples:
  foundry-implementation-actor lint .
  foundry-implementation-actor show . --registry registry.example.com
  foundry-implementation-actor implement . --task task.yaml
  foundry-implementation-actor serve . --port 8080

\b
Exit codes: 0 done, 1 refused, 2 a mistake in what was asked, 3 this host
is not fit, 4 a bug, 130 interrupted. `fia` is a short name of the command.
"""


class Entry(NamedTuple):
    """Where a command lives, its line in the list of commands, and the extra that it cannot be imported without."""

    module: str
    attribute: str
    summary: str
    extra: str = ""


COMMANDS = {
    "lint": Entry("lint", "lint", "Check a sidecar, and the cards beside it."),
    "show": Entry("show", "show", "Print every name that is derived from a sidecar."),
    "render-cards": Entry("render_cards", "render_cards", "Write the four cards beside a sidecar."),
    "serve": Entry("serve", "serve", "Answer both doors over HTTP."),
    "implement": Entry("implement", "implement", "Turn one task into one branch, without a server."),
    "assess": Entry("assess", "assess", "Ask whether one task can be delivered, without a server."),
    "gate": Entry("gate", "gate", "Land class bodies that were judged, whole, or leave no trace."),
    "mcp": Entry("mcp", "mcp", "Offer the gate to a coding agent, over stdio."),
    "demo": Entry("demo", "demo", "See the whole path on a small repository of its own."),
    "doctor": Entry("doctor", "doctor", "Check this host, its tools and its settings."),
}


class LazyGroup(click.Group):
    """A group that lists its commands from a table and imports the one that is called."""

    table: Mapping[str, Entry] = COMMANDS

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names of the commands, in the table's order."""
        return list(self.table)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now, or None."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        with needing(entry.extra, cmd_name):
            module = importlib.import_module(f"foundry_implementation_actor.cli.{entry.module}")
        command = getattr(module, entry.attribute)
        assert isinstance(command, click.Command), "a command is a click command"
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.table.items()])


@contextlib.contextmanager
def needing(extra: str, command: str) -> Iterator[None]:
    """Say what to install when an import of this command fails for a module of this extra.

    Raises:
        ActorError: UNFIT, naming the module.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not extra or (error.name or "").startswith("foundry_implementation_actor"):
            raise
        from foundry_implementation_actor.system.install import install  # noqa: PLC0415 - needed by this error only

        said = f"`{command}` needs the module {error.name}, which is not installed"
        raise ActorError(Code.UNFIT, said, hint=install(extra)) from error


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"{PACKAGE} {_version()}")
        ctx.exit()


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - 50 ms, needed by --version and a bug's file only

    return version(PACKAGE)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Print it.")
def group() -> None:
    """Turn one task into one verified git branch.

    A use of this actor is a folder with one file, actor-agentic-context.yaml.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments after the program's name; those of the process when None.

    Returns:
        The exit code. A command gives its own by returning it; None counts as 0.
    """
    given = dict(os.environ)  # a command that runs an actor scrubs its secrets, which a traceback may still hold
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _EXIT_PIPE
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return MEANINGS[Code.INTERRUPTED].exit_code
    except Exception as error:  # noqa: BLE001 - the one boundary: no traceback reaches a user
        return _report_bug(error, given)
    return code


def _run(argv: Sequence[str] | None) -> int:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    color = False if plain else None
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        # Not group.main(): it turns a reader that went away into exit code 1, which here means refused.
        with group.make_context(PACKAGE, words, color=color) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except ActorError as error:
        return _report(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return code if isinstance(code, int) else 0


def _report(error: ActorError) -> int:
    click.echo(f"error: {error.seen}", err=True)
    if error.hint:
        click.echo(f"hint: {error.hint}", err=True)
    return error.meaning.exit_code


def _report_bug(error: Exception, environ: Mapping[str, str]) -> int:
    kept = _keep_traceback(error, environ)
    click.echo(f"error: this is a bug ({type(error).__name__}); {kept}", err=True)
    return MEANINGS[Code.BUG].exit_code


def _keep_traceback(error: Exception, environ: Mapping[str, str]) -> str:
    import tempfile  # noqa: PLC0415 - needed for a bug only
    import traceback  # noqa: PLC0415 - needed for a bug only

    from foundry_implementation_actor.system.secrets import redactor  # noqa: PLC0415 - needed for a bug only

    secrets = [value for name, value in environ.items() if _SECRET_NAME.search(name) and value.isprintable()]
    lines = [f"{PACKAGE} {_version()}, Python {sys.version}\n", f"{sys.argv!r}\n", *traceback.format_exception(error)]
    try:
        descriptor, path = tempfile.mkstemp(prefix=f"{PACKAGE}-", suffix=".traceback.txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(redactor(secrets)("".join(lines)))
    except OSError as refusal:
        return f"its traceback could not be kept ({refusal.strerror})"
    return f"please report it with the traceback in {path}"


def _discard_output() -> None:
    """Point stdout at nothing, so that the interpreter's last flush raises no second error."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
