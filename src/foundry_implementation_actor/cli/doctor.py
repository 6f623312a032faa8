"""`doctor`: this host, its tools and its settings, each with what mends it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

from foundry_implementation_actor.actor.examine import DECLARED, examine, readable_settings
from foundry_implementation_actor.actor.variables import Variable
from foundry_implementation_actor.cli.doctor_sandbox import check_sandboxes
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, MEANINGS, Code
from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.system.secrets import Redact, redactor

_EPILOG = """\b
Examples:
  foundry-implementation-actor doctor
  IMAGES=off foundry-implementation-actor doctor path/to/use
  foundry-implementation-actor doctor --settings
  foundry-implementation-actor doctor --sandbox
  foundry-implementation-actor doctor --json

\b
Exit codes: 0 a run could be made now (warnings allowed), 3 something is missing
or wrong.
"""
_COLORS = {State.OK: "green", State.WARNING: "yellow", State.MISSING: "red", State.WRONG: "red"}
_UNUSABLE = "(cannot be used)"
_SHOWN = 60


@click.command(epilog=_EPILOG)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--sandbox", is_flag=True, help="Instead, try every known way out of the sandboxes that work here.")
@click.option("--settings", "with_settings", is_flag=True, help="Print every setting before what was found.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with the settings.")
def doctor(folder: Path | None, sandbox: bool, with_settings: bool, as_json: bool) -> int:
    """Check this host, its tools and its settings, and FOLDER's sidecar when it is given.

    Nothing is changed and nothing is asked of the forge or the model.
    """
    environ = dict(os.environ)
    if sandbox:
        return check_sandboxes(readable_settings(environ).sandbox, as_json=as_json)
    redact = redactor(readable_settings(environ).secrets())
    findings = [replace(finding, seen=redact(finding.seen)) for finding in examine(environ, folder)]
    settings = _settings(environ, redact)
    fit = not any(finding.stops for finding in findings)
    if as_json:
        table = {"fit": fit, "findings": [asdict(finding) for finding in findings], "settings": settings}
        click.echo(json.dumps(table, ensure_ascii=True))
    else:
        if with_settings:
            _show_settings(settings)
        _show(findings)
    return EXIT_DELIVERED if fit else MEANINGS[Code.UNFIT].exit_code


def _settings(environ: Mapping[str, str], redact: Redact) -> list[dict[str, str]]:
    """Every variable as it stands; of a secret, and of what cannot be used, not the value."""
    return [
        {"name": v.name, "value": redact(_value(v, environ)), "default": v.default, "what": v.what}
        for v in DECLARED.values()
    ]


def _value(variable: Variable, environ: Mapping[str, str]) -> str:
    text = environ.get(variable.name)
    if not text:
        return "not set" if variable.secret else ""
    try:
        variable.read(text)
    except ValueError:
        return _UNUSABLE
    return "set" if variable.secret else text


def _show_settings(settings: list[dict[str, str]]) -> None:
    click.secho("Settings: environment variables, read once at the start", bold=True)
    for row in settings:
        click.echo(_row(row))
    click.echo()


def _show(findings: list[Finding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        state = click.style(f"{finding.state:<7}", fg=_COLORS[finding.state])
        click.echo(f"{state}  {finding.subject:<{width}}  {_line(finding.seen)}")
        if finding.mend and finding.state is not State.OK:
            click.echo(f"{'':7}  {'':{width}}  -> {_line(finding.mend)}")
    click.secho(f"\n{_verdict(sum(finding.stops for finding in findings))}", bold=True)


def _row(row: Mapping[str, str]) -> str:
    value = row["value"] or "(default)"
    default = f" [{row['default']}]" if row["default"] else ""
    return f"  {row['name']:<24} {_cut(value):<24} {row['what']}{default}"


def _verdict(stops: int) -> str:
    if not stops:
        return "A run could be made now."
    return f"No run can be made now: {stops} thing{'s are' if stops > 1 else ' is'} missing or wrong."


def _line(text: str) -> str:
    return " / ".join(text.splitlines())


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
