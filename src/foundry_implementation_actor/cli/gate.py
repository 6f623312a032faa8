"""`gate`: the landing gate on the command line; each command is in a file of its own kind."""

from __future__ import annotations

import click

from foundry_implementation_actor.cli.main import Entry, LazyGroup

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


COMMANDS = {
    "make": Entry("gate_land", "make", "Make a plugin, a class or a test that bodies can land in.", "gate"),
    "implement": Entry("gate_land", "implement", "Land the whole body of a class, if the judges let it.", "gate"),
    "edit": Entry("gate_land", "edit", "Replace parts of a class, if the judges let it.", "gate"),
    "batch": Entry("gate_land", "batch", "Land several bodies together, or none of them.", "gate"),
    "read": Entry("gate_look", "read", "Print the text of a class; its digest goes to stderr.", "gate"),
    "test": Entry("gate_look", "test", "Run a class's own test on the text that stands.", "gate"),
    "status": Entry("gate_keep", "status", "List the bodies that are staged and not finished.", "gate"),
    "abandon": Entry("gate_keep", "abandon", "Drop what is staged for a class.", "gate"),
    "recover": Entry("gate_keep", "recover", "Undo what a killed process left half done.", "gate"),
    "log": Entry("gate_keep", "log", "Show the latest attempts: when, what, and what came of it.", "gate"),
    "doctor": Entry("gate_keep", "doctor", "Say which app this is, and what mends what it lacks.", "gate"),
    "demo": Entry("gate_demo", "demo", "See a test land, a fake refused by it, and the real body land.", "gate"),
}


class _Gate(LazyGroup):
    """The commands of the gate, each imported when it is called: most need the `gate` extra."""

    table = COMMANDS


@click.group(cls=_Gate, epilog=_EPILOG)
def gate() -> None:
    """Land class bodies that were judged, whole, or leave no trace.

    A body is parsed, linked and run against its class's own test before it
    replaces anything. The answer says what nobody could judge.
    """
