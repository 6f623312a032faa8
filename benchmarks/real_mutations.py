"""Scaffolds and mutations of a class in a module's text; every byte that they do not concern stays as it is."""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from foundry_implementation_actor.domain.edit import Pair

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Node = TypeVar("_Node", bound=ast.AST)
_UNDONE = b"raise NotImplementedError"


@dataclass(frozen=True)
class Text:
    """A module's bytes with its tree; positions are those of the tree's nodes."""

    content: bytes
    tree: ast.Module

    @classmethod
    def of(cls, content: bytes) -> Text:
        return cls(content, ast.parse(content))

    def class_(self, name: str) -> ast.ClassDef:
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)

    def at(self, line: int, column: int) -> int:
        """The offset of a position."""
        lines = self.content.split(b"\n")
        return sum(len(before) + 1 for before in lines[: line - 1]) + column

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)

    def put(self, start: int, end: int, new: bytes) -> bytes:
        return self.content[:start] + new + self.content[end:]


_Change = tuple[int, int, bytes]
"""What to put where: start, end, and the new bytes."""


def scaffold(content: bytes, class_: str) -> bytes:
    """The module with nothing done in any method of one class."""
    text = Text.of(content)
    for method in reversed(text.class_(class_).body):
        if isinstance(method, _FUNCTIONS):
            first, last = method.body[0], method.body[-1]
            decorated = getattr(first, "decorator_list", [])
            start = text.span(decorated[0])[0] - 1 if decorated else text.span(first)[0]
            content = content[:start] + _UNDONE + content[text.span(last)[1] :]
    return content


def mutations(content: bytes, class_: str, seed: str) -> Iterator[tuple[str, bytes]]:
    """One mutation of each kind, at a place that the seed chooses among all where it can be made."""
    text = Text.of(content)
    for kind, places in _KINDS.items():
        changes = list(places(text, text.class_(class_)))
        random.Random(f"{seed} {class_} {kind}").shuffle(changes)
        for change in changes:
            mutated = text.put(*change)
            if _parses(mutated):
                yield kind, mutated
                break


def pair(before: bytes, after: bytes) -> Pair:
    """The lines that differ, with as many around them as make the first text the only one of its kind."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = min(len(old), len(new))
    start = next((at for at in range(same) if old[at] != new[at]), same)
    tail = next((at for at in range(same - start) if old[-1 - at] != new[-1 - at]), same - start)
    while before.count(b"".join(old[start : len(old) - tail])) != 1:
        start, tail = max(0, start - 1), max(0, tail - 1)
    return Pair(b"".join(old[start : len(old) - tail]), b"".join(new[start : len(new) - tail]))


def _parses(content: bytes) -> bool:
    try:
        ast.parse(content)
    except SyntaxError:
        return False
    return True


def _renamed_methods(text: Text, node: ast.ClassDef) -> Iterator[_Change]:
    """A public method under another name; one that is declared more than once (a property's parts) is left."""
    methods = [method for method in node.body if isinstance(method, _FUNCTIONS)]
    often = Counter(method.name for method in methods)
    for method in methods:
        if not method.name.startswith("_") and often[method.name] == 1:
            start = text.span(method)[0]
            found = re.compile(rb"def\s+%s\b" % method.name.encode()).search(text.content, start)
            if found:
                yield found.end(), found.end(), b"_renamed"


def _dropped_imports(text: Text, node: ast.ClassDef) -> Iterator[_Change]:
    """An import at top level of a name that the class uses and nothing else binds."""
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    for statement in text.tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) and getattr(statement, "module", "") != "__future__":
            others = {name for other in ast.walk(text.tree) if other is not statement for name in _bound(other)}
            if (_bound(statement) & used) - others:
                yield (*text.span(statement), b"pass")


def _bound(node: ast.AST) -> set[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names}
        case ast.Name(id=name, ctx=ast.Store()):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.arg(arg=name):
            return {name}
    return set()


def _dropped_arguments(text: Text, node: ast.ClassDef) -> Iterator[_Change]:
    """The last positional argument of a call; not of what is raised, which takes any."""
    raised = {id(inner.exc) for inner in ast.walk(node) if isinstance(inner, ast.Raise)}
    for call in _inside(node, ast.Call):
        if call.args and id(call) not in raised and not isinstance(call.args[-1], ast.Starred | ast.GeneratorExp):
            start, end = text.span(call.args[-1])
            before = text.span(call.args[-2])[1] if len(call.args) > 1 else start
            follow = re.compile(rb"\s*,").match(text.content, end) if len(call.args) == 1 and call.keywords else None
            yield before, follow.end() if follow else end, b""


def _flipped_conditions(text: Text, node: ast.ClassDef) -> Iterator[_Change]:
    for condition in _inside(node, ast.If):
        start, end = text.span(condition.test)
        yield start, end, b"not (" + text.content[start:end] + b")"


def _inside(node: ast.ClassDef, kind: type[_Node]) -> Iterator[_Node]:
    """The nodes of a kind in the methods of a class."""
    for method in node.body:
        if isinstance(method, _FUNCTIONS):
            yield from (inner for part in method.body for inner in ast.walk(part) if isinstance(inner, kind))


_KINDS: dict[str, Callable[[Text, ast.ClassDef], Iterator[_Change]]] = {
    "renamed method": _renamed_methods,
    "dropped import": _dropped_imports,
    "dropped argument": _dropped_arguments,
    "flipped condition": _flipped_conditions,
}
KINDS = tuple(_KINDS)
