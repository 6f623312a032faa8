"""Shows a run's records to a person: one short line for each step, on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from foundry_implementation_actor.system.journal import Sink

_SHOWN = 100
_HELD = ("held by {sandbox}", "not held: a session may change and reach whatever the actor's user may")
_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "session-tool": lambda record: f"{record.get('tool')} {record.get('input')}",
    "session-tool-result": lambda record: f"error: {record.get('text')}" if record.get("is_error") else "",
    "session-text": lambda record: record.get("text", ""),
    "sandbox": lambda record: _HELD[record["sandbox"] == "none"].format(**record),
    "egress-refused": lambda record: f"did not reach {record['host']}:{record['port']}: SESSION_HOSTS does not open it",
    "gate-made": lambda record: f"the gate made {', '.join(record['files'])}",
    "gate-landed": lambda record: f"the gate landed {_classes(record)}",
    "gate-refused": lambda record: f"the gate refused {_classes(record)}: {record['because']}",
    "gate-unfinished": lambda record: f"begun in sections and not finished: {', '.join(record['classes'])}",
    "continues": lambda record: f"continues from {record['branch']} at {record['commit'][:12]}",
    "already-delivered": lambda record: f"{record['branch']} already holds the answer to this request",
    "branch-pushed": lambda record: f"pushed {record['branch']} at {record['commit'][:12]}",
    "images-off": lambda record: "images are off: none is built or published for " + ", ".join(record["components"]),
}


def _classes(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{body['plugin']}.{body['class']}" for body in record["bodies"])


def shower(*, color: bool | None) -> Sink:
    """A `Journal` sink: writes what a person wants to follow, drops the rest.

    Args:
        color: whether colours are wanted; None leaves it to what stderr is. It is settled here because
            records also come from threads, which know nothing of the command's context.
    """

    def show(line: str, _meta: Mapping[str, str]) -> None:
        text = told(json.loads(line))
        if text:
            click.echo(f"  {text}", err=True, color=color)

    return show


def told(record: Mapping[str, Any]) -> str:
    """What a person reads of a record, one short line; empty for what they need not see."""
    return _step(record) if record["event"] == "step" else _event(record)


def write_record(line: str, _meta: Mapping[str, str]) -> None:
    """A `Journal` sink for machines: every record, one line each, on stderr."""
    click.echo(line, err=True)


def records_wanted(*, as_json: bool) -> bool:
    """Whether records go to stderr as they are: asked for, and nobody is looking at a terminal."""
    return as_json and not sys.stderr.isatty()


def _step(record: Mapping[str, Any]) -> str:
    name = " ".join(filter(None, [click.style(record["step"], bold=True), record.get("source", "")]))
    if record["phase"] == "start":
        return f"{name} …" if record["step"] == "session" else ""
    if record["phase"] == "ok":
        return f"{name} {record['duration_ms'] / 1000:.1f} s"
    # Not the error itself: it is the last thing that the command says.
    return click.style(f"{record['step']} failed after {record['duration_ms'] / 1000:.1f} s", fg="red")


def _event(record: Mapping[str, Any]) -> str:
    words: Callable[[Mapping[str, Any]], str] | None = _WORDS.get(record.get("step", ""))
    if words is None:
        return ""
    text = " ".join(str(words(record)).split())
    return click.style(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", dim=True) if text else ""
