"""Shows a run's records to a person: one short line for each step, on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from foundry_implementation_actor.system.journal import Sink

_SHOWN = 100
_SHOWN_OF_CAUSE = 300
# A path that is cut names nothing.
_WHOLE = {"kept"}
_REMEDIATE = "verify of {component} is red ({ended}); remediation {attempt} of {of}"
_HELD = ("held by {sandbox}", "not held: a session may change and reach whatever the actor's user may")


def _answered(record: Mapping[str, Any]) -> str:
    where = "the default branch" if record["merged"] else record["branch"]
    since = "" if record["asked_at"] == record["commit"] else f", and what was added since, at {record['commit'][:12]}"
    return f"{where} already holds the answer to this request{since}"


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
    "remediate": lambda record: _REMEDIATE.format(**record),
    "replaces": lambda record: f"starts anew, to replace {record['branch']} at {record['commit'][:12]}",
    "continues": lambda record: f"continues from {record['branch']} at {record['commit'][:12]}",
    "already-delivered": _answered,
    "branch-pushed": lambda record: f"pushed {record['branch']} at {record['commit'][:12]}",
    "kept": lambda record: f"the change is kept as {record['path']}",
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
    whose = record.get("source") or record.get("component") or ""
    name = " ".join(filter(None, [click.style(record["step"], bold=True), whose]))
    if record["phase"] == "start":
        return f"{name} …" if record["step"] == "session" else ""
    seconds = f"{record['duration_ms'] / 1000:.1f} s"
    if record["phase"] == "ok":
        return f"{name} {seconds}"
    # Of several at once each says its cause; that of a step which is alone is the last thing that the command says.
    cause = f": {_short(record['error'], _SHOWN_OF_CAUSE)}" if whose else ""
    return click.style(" ".join(filter(None, [record["step"], whose, "failed after", seconds])) + cause, fg="red")


def _event(record: Mapping[str, Any]) -> str:
    words: Callable[[Mapping[str, Any]], str] | None = _WORDS.get(record.get("step", ""))
    if words is None:
        return ""
    text = str(words(record))
    text = text if record["step"] in _WHOLE else _short(text, _SHOWN)
    return click.style(text, dim=True) if text else ""


def _short(text: str, most: int) -> str:
    """A text on one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
