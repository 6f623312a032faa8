"""`gate make|implement|edit|batch`: what creates a file, and what changes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foundry_implementation_actor.cli.gate_answer import content_of, gate_command, show_landing
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.json_text import read_json
from foundry_implementation_actor.gate.answer import Answer, answer, made
from foundry_implementation_actor.gate.ask import MODES, edit_wish, wish
from foundry_implementation_actor.gate.gate import Gate


def _show_made(found: Mapping[str, Any]) -> None:
    word = "made" if found["written"] else "would make"
    for path in found["made"]:
        click.echo(f"{word}  {path}")


@gate_command("make", _show_made)
@click.argument("kind")
@click.argument("plugin")
@click.argument("name", default="")
@click.option("--dry-run", is_flag=True, help="Say what would be made, and make nothing.")
def make(gate: Gate, kind: str, plugin: str, name: str, dry_run: bool) -> Answer:
    """Make a plugin, a class or a test that bodies can land in.

    KIND is plugin, service, value-object, interface or test. NAME is the new
    class; for a test, the class that it judges.
    """
    return made(gate.make(kind, plugin, name, dry_run=dry_run))


@gate_command("implement", show_landing)
@click.argument("plugin")
@click.argument("class_", metavar="CLASS")
@click.option("--content", metavar="FILE|-", help="The body, or one section of it; 8,192 bytes at most.")
@click.option("--mode", type=click.Choice(MODES), help="Send a longer body in sections, then finish it.")
@click.option("--expect", metavar="DIGEST", help="Refuse when the class's text has another digest.")
@click.option("--section", type=int, help="The number of this section, from 1: sent twice, it is taken once.")
@click.option("--offset", type=int, help="The bytes before this section: sent twice, it is taken once.")
@click.option("--bytes", "size", type=int, help="With finish: the bytes of the whole body.")
@click.option("--sections", type=int, help="With finish: the number of sections.")
@click.option("--sha256", metavar="DIGEST", help="With finish: the digest of the whole body.")
def implement(gate: Gate, plugin: str, class_: str, content: str | None, **said: Any) -> Answer:
    """Land the whole body of CLASS in PLUGIN, if the judges let it."""
    fields = {"plugin": plugin, "class": class_, "bytes": said.pop("size"), **said}
    if content is None and said["mode"] != "finish":
        raise ActorError(Code.BAD_REQUEST, "is missing", hint="give --content FILE, or - for stdin", where="content")
    if content is not None:
        fields["content"] = content_of(content)
    return answer(gate.implement(wish(fields)))


@gate_command("edit", show_landing)
@click.argument("plugin")
@click.argument("class_", metavar="CLASS")
@click.option("--edits", required=True, metavar="FILE|-", help='A JSON list: [{"find": "…", "replace": "…"}].')
@click.option("--expect", metavar="DIGEST", help="Refuse when the class's text has another digest.")
def edit(gate: Gate, plugin: str, class_: str, edits: str, expect: str | None) -> Answer:
    """Replace parts of CLASS in PLUGIN, each found exactly once, if the judges let it."""
    fields = {"plugin": plugin, "class": class_, "edits": _json(edits), "expect": expect}
    return answer(gate.implement(edit_wish(fields)))


@gate_command("batch", show_landing)
@click.option("--bodies", required=True, metavar="FILE|-",
              help="A JSON list of bodies: plugin, class, and content or edits or mode=finish.")  # fmt: skip
def batch(gate: Gate, bodies: str) -> Answer:
    """Land several bodies together, or none of them."""
    return answer(gate.implement(wish({"batch": _json(bodies)})))


def _json(path: str) -> Any:
    where = "stdin" if path == "-" else path
    try:
        return read_json(content_of(path).decode("utf-8-sig"), "it")
    except UnicodeDecodeError as error:
        raise ActorError(Code.BAD_REQUEST, f"is not UTF-8 at byte {error.start}", where=where) from error
    except ValueError as error:
        raise ActorError(Code.BAD_REQUEST, str(error), hint="give a JSON list", where=where) from error
