"""`gate`: the landing gate on the command line; each command is in a file of its own kind."""

from __future__ import annotations

import click

from foundry_implementation_actor.cli.gate_demo import demo
from foundry_implementation_actor.cli.gate_keep import abandon, doctor, log, recover, status
from foundry_implementation_actor.cli.gate_land import batch, edit, implement, make
from foundry_implementation_actor.cli.gate_look import read, test

_EPILOG = """\b
Examples:
  foundry-implementation-actor gate make service shop Cart
  foundry-implementation-actor gate implement shop Cart --content cart.py
  foundry-implementation-actor gate edit shop Cart --edits pairs.json
  foundry-implementation-actor gate doctor

\b
Exit codes: 0 landed (or done), 1 refused, 2 a mistake in what was asked,
3 this host is not fit. With --json the answer alone is on stdout.
"""


@click.group(epilog=_EPILOG)
def gate() -> None:
    """Land class bodies that were judged, whole, or leave no trace.

    A body is parsed, linked and run against its class's own test before it
    replaces anything. The answer says what nobody could judge.
    """


for command in (make, implement, edit, batch, read, test, status, abandon, recover, log, doctor, demo):
    gate.add_command(command)
