"""`gate demo`: what the gate is for, shown in a minute on a small app of its own."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from foundry_implementation_actor.demo.gate_story import PLAYS, Scene, absent, tell
from foundry_implementation_actor.domain.error import EXIT_DELIVERED, MEANINGS, Code

_EPILOG = """\b
Exit codes: 0 all went as told, 3 neither language can be shown here, 4 it went
otherwise (a bug).
"""


@click.command(epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end and nothing else.")
def demo(as_json: bool) -> int:
    """See a test land, a fake refused by it, and the real body land.

    In Python where pytest is installed, and in PHP where php and phpunit are.
    Nothing stays behind.
    """
    path = os.environ.get("PATH") or os.defpath
    scenes: list[Scene] = []
    skipped: dict[str, list[str]] = {}
    for play in PLAYS:
        missing = absent(play, path)
        if missing:
            skipped[play.language] = missing
            continue
        if not as_json:
            click.secho(f"\n{play.language}", bold=True)
        with tempfile.TemporaryDirectory(prefix="gate-demo-") as folder:
            scenes += tell(play, Path(folder).resolve(), path, _nothing if as_json else _show)
    ok = bool(scenes) and all(scene.as_told for scene in scenes)
    if as_json:
        click.echo(json.dumps({"ok": ok, "skipped": skipped, "scenes": [asdict(scene) for scene in scenes]}))
    else:
        _show_end(scenes, skipped, ok=ok)
    return EXIT_DELIVERED if ok else MEANINGS[Code.BUG if scenes else Code.UNFIT].exit_code


def _show(scene: Scene) -> None:
    click.echo(f"  {scene.title}  ({scene.seconds:.1f} s)")
    answer = scene.answer
    told = answer.get("verified") or answer.get("error") or ", ".join(answer.get("made", ()))
    for line in str(told).splitlines():
        click.secho(f"      {line}", fg="green" if answer["ok"] else "red")


def _show_end(scenes: list[Scene], skipped: dict[str, list[str]], *, ok: bool) -> None:
    for language, missing in skipped.items():
        click.echo(f"\n{language} was left out; it needs {' and '.join(missing)}")
    seconds = sum(scene.seconds for scene in scenes)
    if not scenes:
        click.secho("\nnothing could be shown", fg="red", bold=True)
    elif ok:
        click.secho(f"\nAll went as told, in {seconds:.1f} s.", fg="green", bold=True)
    else:
        click.secho(f"\nwent otherwise: {scenes[-1].title}", fg="red", bold=True)


def _nothing(_: Scene) -> None:
    return
