"""`doctor --sandbox`: every way out of a sandbox that is known, tried on this host now."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from foundry_implementation_actor.domain.error import EXIT_DELIVERED, MEANINGS, Code
from foundry_implementation_actor.sandbox.choose import AUTO, choose, why_not
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.sandbox.self_check import Outcome, Result, full_check

_COLORS = {Result.HELD: "green", Result.UNTRIED: "yellow", Result.THROUGH: "red"}


def check_sandboxes(word: str, *, as_json: bool) -> int:
    """Try what the setting names, `auto` being all that there are, and print what came of each try.

    Args:
        word: the setting, one of its words.
        as_json: print one JSON object instead of lines.

    Returns:
        The exit code: 3 when the sandbox that would be used does not hold all that it claims to.

    Raises:
        ActorError: UNFIT when no sandbox works here.
    """
    used = choose(word)
    checked = {one.name: (one, full_check(one)) for one in _all(word, used)}
    if as_json:
        click.echo(json.dumps({"used": used.name, "sandboxes": [_told(*each) for each in checked.values()]}))
    for one, outcomes in () if as_json else checked.values():
        _show(one, outcomes, used=one.name == used.name)
    faults = checked[used.name][1] if used.name in checked else ()
    return MEANINGS[Code.UNFIT].exit_code if any(outcome.is_fault for outcome in faults) else EXIT_DELIVERED


def _all(word: str, used: Sandbox) -> list[Sandbox]:
    if word != AUTO:
        return [] if used.name == NoSandbox.name else [used]
    return [used, *(choose(name) for name in ("bubblewrap", "landlock") if name != used.name and not why_not(name))]


def _told(one: Sandbox, outcomes: tuple[Outcome, ...]) -> dict[str, object]:
    return {
        "sandbox": one.name,
        "gaps": [asdict(gap) for gap in one.gaps],
        "tries": [asdict(outcome) for outcome in outcomes],
    }


def _show(one: Sandbox, outcomes: tuple[Outcome, ...], *, used: bool) -> None:
    click.secho(f"{one.name}{' (sessions run in it)' if used else ''}", bold=True)
    width = max(len(outcome.name) for outcome in outcomes)
    for outcome in outcomes:
        result = click.style(f"{outcome.result:<18}", fg=_COLORS[outcome.result])
        known = f" [known: {outcome.gap}]" if outcome.gap and outcome.result is Result.THROUGH else ""
        click.echo(f"  {result} {outcome.name:<{width}}  {outcome.what}{known}")
    held = sum(outcome.result is Result.HELD for outcome in outcomes)
    click.echo(f"  {held} of {len(outcomes)} held. What it cannot hold on this host:")
    for gap in one.gaps:
        click.echo(f"    {gap.name}: {gap.what}")
    click.echo()
