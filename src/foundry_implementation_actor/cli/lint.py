"""`lint`: does a folder's sidecar keep the contract, and do the cards beside it agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from foundry_implementation_actor.definition.cards import CARDS, missing
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, EXIT_REFUSED
from foundry_implementation_actor.domain.report import Detail, Report
from foundry_implementation_actor.sidecar.lint import lint as lint_sidecar
from foundry_implementation_actor.sidecar.load import folder_of

_EPILOG = """\b
Examples:
  foundry-implementation-actor lint
  foundry-implementation-actor lint path/to/use --json

\b
Exit codes: 0 conforms (warnings allowed), 1 there are errors.
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def lint(folder: Path, as_json: bool) -> int:
    """Check FOLDER's sidecar and cards.

    Every error is listed, one a line: file:line:column, the key, what is
    wrong, what to write. FOLDER may be a sidecar file; the default is the
    current directory.
    """
    report = lint_sidecar(folder).joined(_cards(folder))
    if as_json:
        found = {"warnings": _parts(report, report.warns), "errors": _parts(report, report.errors)}
        click.echo(json.dumps({"ok": report.ok, "oks": report.oks, **found}, ensure_ascii=True))
    else:
        _print(report)
    return EXIT_DELIVERED if report.ok else EXIT_REFUSED


def _cards(folder: Path) -> Report:
    beside = folder_of(folder)
    if len(missing(beside)) == len(CARDS):
        return Report()
    from foundry_implementation_actor.definition import conformance  # noqa: PLC0415 - 60 ms, where cards exist only

    return conformance.check(beside)


def _parts(report: Report, lines: list[str]) -> list[dict[str, Any]]:
    """Each line with its parts; one about the cards has no more than its text."""
    return [{"text": line, **report.details.get(line, Detail(message=line))._asdict()} for line in lines]


def _print(report: Report) -> None:
    for line in report.oks:
        click.echo(f"{click.style('ok', fg='green')}: {line}")
    for line in report.warns:
        click.echo(f"{click.style('warning', fg='yellow')}: {line}")
    for line in report.errors:
        click.echo(f"{click.style('error', fg='red')}: {line}")
    if report.errors or report.warns:
        click.echo(f"{_count(report.errors, 'error')}, {_count(report.warns, 'warning')}")


def _count(lines: list[str], noun: str) -> str:
    return f"{len(lines)} {noun}{'' if len(lines) == 1 else 's'}"
