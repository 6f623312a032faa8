"""`gate read|test`: what stands in a class's file, and what its own test says of it."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from typing import Any

import click

from foundry_implementation_actor.cli.gate_answer import gate_command, show_refused
from foundry_implementation_actor.gate import answer
from foundry_implementation_actor.gate.answer import Answer
from foundry_implementation_actor.gate.ask import target_of
from foundry_implementation_actor.gate.gate import Gate


def _show_text(found: Mapping[str, Any]) -> None:
    coded = found.get("content_base64")
    content = found["content"].encode() if coded is None else base64.b64decode(coded)
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
    click.echo(f"{found['file']}  {found['bytes']} bytes  digest {found['digest']}", err=True)


@gate_command("read", _show_text, show_refused)
@click.argument("plugin")
@click.argument("class_", metavar="CLASS")
def read(gate: Gate, plugin: str, class_: str) -> Answer:
    """Print the text of CLASS in PLUGIN; its digest goes to stderr."""
    return answer.read(gate.read(target_of({"plugin": plugin, "class": class_})))


def _show_test(found: Mapping[str, Any]) -> None:
    click.echo(f"{click.style('green', fg='green')}  {found['file']}  {found['verified']}")


def _show_no_test(found: Mapping[str, Any]) -> None:
    show_refused(found, "red" if "ran" in found else "refused")


@gate_command("test", _show_test, _show_no_test)
@click.argument("plugin")
@click.argument("class_", metavar="CLASS")
def test(gate: Gate, plugin: str, class_: str) -> Answer:
    """Run the own test of CLASS in PLUGIN on the text that stands."""
    return answer.tested(gate.test(target_of({"plugin": plugin, "class": class_})))
