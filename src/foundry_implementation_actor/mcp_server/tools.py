"""The tools that the gate offers: their names, what they take, and what a client may expect of each."""

from __future__ import annotations

from typing import Any

from mcp.types import Tool, ToolAnnotations

INSTRUCTIONS = """\
The gate is how class bodies get into this app. A class is named by its plugin and its name, never by a path.
1. make creates the file of a plugin, a class or a test. Nothing else creates files.
2. implement the test first: its class is named like the file's test class, for example TestCart (PHP: CartTest).
3. implement the class. It lands only when every judge lets it pass: syntax, shape, linkage, and the class's own test.
   A refusal leaves the file as it was and says why; mend that and ask again.
4. edit changes parts of a text; read gives the text and its digest; test runs the class's own test.
A body over 8,192 bytes comes in sections: mode start, append, finish. A finish that is refused leaves them staged.
Classes that need each other land together: the batch of implement.
"""

Schema = dict[str, Any]

_PLUGIN: Schema = {"type": "string", "description": "The plugin's name, a bare identifier."}
_CLASS: Schema = {"type": "string", "description": "The class's name, a bare identifier."}
_EXPECT: Schema = {"type": "string", "description": "The digest that read gave: refuse when the text has moved on."}
_CONTENT: Schema = {"type": "string", "description": "The whole body, or one section of it; at most 8,192 bytes."}
_EDITS: Schema = {
    "type": "array",
    "minItems": 1,
    "description": "Applied in order; each find text must stand exactly once in what the earlier pairs left.",
    "items": {
        "type": "object",
        "properties": {"find": {"type": "string"}, "replace": {"type": "string"}},
        "required": ["find", "replace"],
        "additionalProperties": False,
    },
}
_ANSWER: Schema = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "error": {"type": "string", "description": "Why not; the file is as it was."},
        "file": {"type": "string"},
        "class": {"type": "string"},
        "verified": {"type": "string", "description": "The judges that passed it, and what nobody judged and why."},
    },
    "required": ["ok"],
}


def _number(said: str, least: int) -> Schema:
    return {"type": "integer", "minimum": least, "description": said}


def _tool(name: str, title: str, said: str, takes: dict[str, Schema], needs: list[str], *, reads: bool) -> Tool:
    """A tool; one that does not only read may be asked again with the same words to the same end."""
    schema: Schema = {"type": "object", "properties": takes, "required": needs, "additionalProperties": False}
    hints = ToolAnnotations(
        title=title, read_only_hint=reads, destructive_hint=False, idempotent_hint=name != "make", open_world_hint=False
    )
    return Tool(name=name, title=title, description=said, input_schema=schema, output_schema=_ANSWER, annotations=hints)


_DECLARED: dict[str, Schema] = {
    "bytes": _number("With finish: the bytes of the whole body.", 0),
    "sections": _number("With finish: the number of sections.", 1),
    "sha256": {"type": "string", "description": "With finish: the digest of the whole body."},
}
_MODES: dict[str, Schema] = {
    "mode": {"type": "string", "enum": ["start", "append", "finish"], "description": "Only for a body in sections."},
    "section": _number("The number of this section, from 1: sent twice, it is taken once.", 1),
    "offset": _number("The bytes before this section: sent twice, it is taken once.", 0),
    **_DECLARED,
}
_BATCH: Schema = {
    "type": "array",
    "description": "Instead of one body: several that land together or not at all. "
    "Each has plugin, class, and content or edits or mode=finish.",
    "items": {
        "type": "object",
        "properties": {"plugin": _PLUGIN, "class": _CLASS, "content": _CONTENT, "edits": _EDITS, "expect": _EXPECT,
                       "mode": {"type": "string", "enum": ["finish"]}, **_DECLARED},
        "required": ["plugin", "class"],
        "additionalProperties": False,
    },
}  # fmt: skip
_NAMES: dict[str, Schema] = {"plugin": _PLUGIN, "class": _CLASS}

TOOLS = (
    _tool(
        "make", "Make a scaffold", "Create the file of a plugin, a class or a test. Overwrites nothing.",
        {
            "kind": {"type": "string", "enum": ["plugin", "service", "value-object", "interface", "test"]},
            "plugin": _PLUGIN,
            "name": {"type": "string", "description": "The new class; for a test, the class it judges."},
            "dry_run": {"type": "boolean", "description": "Say what would be made, and make nothing."},
        },
        ["kind", "plugin"], reads=False,
    ),
    _tool(
        "implement", "Land a class body",
        "Land the whole body of a class that make scaffolded. A refusal changes nothing and says why.",
        {**_NAMES, "content": _CONTENT, "expect": _EXPECT, **_MODES, "batch": _BATCH},
        [], reads=False,
    ),
    _tool(
        "edit", "Change parts of a class",
        "Replace exact texts in a class's current file. What comes of it is judged like a whole body.",
        {**_NAMES, "edits": _EDITS, "expect": _EXPECT},
        ["plugin", "class", "edits"], reads=False,
    ),
    _tool(
        "read", "Read a class", "The current text of a class, and its digest.",
        _NAMES, ["plugin", "class"], reads=True,
    ),
    _tool(
        "test", "Run a class's own test", "Run the own test of a class on the text that stands.",
        _NAMES, ["plugin", "class"], reads=True,
    ),
    _tool("status", "What is staged", "The bodies that are staged in sections and not finished.", {}, [], reads=True),
)  # fmt: skip
