"""`gate status|abandon|recover|log|doctor`: what is under way, what was, and whether the host is fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import click

from foundry_implementation_actor.cli.gate_answer import gate_command
from foundry_implementation_actor.domain.error import Code
from foundry_implementation_actor.domain.fitness import State
from foundry_implementation_actor.gate import answer, ledger
from foundry_implementation_actor.gate.answer import Answer
from foundry_implementation_actor.gate.ask import target_of
from foundry_implementation_actor.gate.fitness import examine
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.staging import Staged

_COLORS = {State.OK: "green", State.WARNING: "yellow", State.MISSING: "red", State.WRONG: "red"}


def _show_status(found: Mapping[str, Any]) -> None:
    for body in found["staged"]:
        click.echo(f"{body['plugin']}.{body['class']}  {_arrived(body)}")
    if not found["staged"]:
        click.echo("nothing is staged")


def _arrived(body: Mapping[str, Any]) -> str:
    if "damage" in body:
        return f"damaged: {body['damage']}; gate abandon {body['plugin']} {body['class']}"
    return f"{answer.size(body)}, since {body['since']}, sha256 {body['sha256']}"


@gate_command("status", _show_status)
def status(gate: Gate) -> Answer:
    """List the bodies that are staged and not finished."""
    return {"ok": True, "staged": [{**answer.staged(body), **_since(body)} for body in gate.status()]}


def _since(body: Staged) -> Mapping[str, str]:
    return {} if body.damage else {"since": _time(body.opened)}


def _show_abandoned(found: Mapping[str, Any]) -> None:
    click.echo("dropped" if found["abandoned"] else "nothing was staged for it")


@gate_command("abandon", _show_abandoned)
@click.argument("plugin")
@click.argument("class_", metavar="CLASS")
def abandon(gate: Gate, plugin: str, class_: str) -> Answer:
    """Drop what is staged for CLASS in PLUGIN."""
    return {"ok": True, "abandoned": gate.abandon(target_of({"plugin": plugin, "class": class_}))}


def _show_recovered(found: Mapping[str, Any]) -> None:
    for line in found["undone"] or ["there was nothing to undo"]:
        click.echo(line)


@gate_command("recover", _show_recovered)
def recover(gate: Gate) -> Answer:
    """Undo what a killed process left half done; the next landing does it too."""
    return {"ok": True, "undone": gate.recover()}


def _show_log(found: Mapping[str, Any]) -> None:
    if not found["entries"]:
        click.echo("nothing was asked to land yet")
    for entry in found["entries"]:
        word = click.style("landed ", fg="green") if entry.get("landed") else click.style("refused", fg="red")
        names = ", ".join(f"{body.get('plugin')}.{body.get('class')}" for body in entry.get("bodies", ()))
        click.echo(f"{entry.get('when')}  {word}  {entry.get('act')!s:<9}  {names}")
        because = str(entry.get("because") or "").partition("\n")[0]
        if because:
            click.echo(f"    {because}")


@gate_command("log", _show_log)
@click.option("--last", type=click.IntRange(1), default=20, show_default=True, help="How many attempts, newest last.")
def log(gate: Gate, last: int) -> Answer:
    """Show the latest attempts: when, what, and what came of it."""
    entries = list(ledger.entries(gate.root))
    return {"ok": True, "entries": list(islice(entries, max(0, len(entries) - last), None))}


def _show_doctor(found: Mapping[str, Any]) -> None:
    width = max(len(finding["subject"]) for finding in found["findings"])
    for finding in found["findings"]:
        state = State(finding["state"])
        click.echo(f"{click.style(f'{state:<7}', fg=_COLORS[state])}  {finding['subject']:<{width}}  {finding['seen']}")
        if finding["mend"] and state is not State.OK:
            click.echo(f"{'':7}  {'':{width}}  -> {finding['mend']}")


@gate_command("doctor", _show_doctor)
def doctor(gate: Gate) -> Answer:
    """Say which app this is, which judges can judge it, and what mends the rest."""
    found = examine(gate.house)
    findings = [asdict(finding) for finding in found]
    missing = [finding.subject for finding in found if finding.stops]
    if missing:
        error = f"missing: {', '.join(missing)}"
        return {"ok": False, "error": error, "code": Code.UNFIT.value, "findings": findings}
    return {"ok": True, "findings": findings}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
