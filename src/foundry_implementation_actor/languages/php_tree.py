"""What the syntax tree of a PHP file says: strict types, what it declares, whether it is a scaffold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import tree_sitter_php
from tree_sitter import Language, Node, Parser

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.php_reach import reaches
from foundry_implementation_actor.languages.port import Reading

_KINDS = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "trait_declaration": "trait",
    "enum_declaration": "enum",
}
# The grammar does not know every way to write `declare`, so the head of a file is read by patterns.
_REMARK = rb"(?>/\*(?s:.*?)\*/|(?://|\#(?!\[))[^\n]*+(?:\n|\Z))"
_START = re.compile(rb"(?:\xef\xbb\xbf)?(?:#![^\n]*\n)?\s*<\?php\b(?:\s|" + _REMARK + rb")*+", re.IGNORECASE)
_DECLARE = re.compile(
    rb"declare(?:\s|"
    + _REMARK
    + rb")*+\(((?:"
    + _REMARK
    + rb"|[^()])*+)\)(?:\s|;|\?>\s*+<\?php\b|"
    + _REMARK
    + rb")*+",
    re.IGNORECASE,
)
_STRICT = re.compile(rb"(?:^|,)\s*strict_types\s*=\s*0*(?:[xbo]0*)?1\s*(?:,|$)", re.IGNORECASE)
_HALT = b"__halt_compiler"
_PARSER = Parser(Language(tree_sitter_php.language_php()))


class Declared(NamedTuple):
    """A class, interface, trait, enum, function or constant of a file: its namespace, kind, name and line."""

    namespace: str
    kind: str
    name: str
    line: int

    @property
    def full(self) -> str:
        """Its name with its namespace."""
        return f"{self.namespace}\\{self.name}" if self.namespace else self.name

    @property
    def is_type(self) -> bool:
        """Whether it is a class, interface, trait or enum."""
        return self.kind in _KINDS.values()


def strict_types(candidate: Candidate) -> Reading:
    """Whether the first statement is `declare(strict_types=1)`; other declares may stand before it."""
    found = _START.match(candidate.content)
    while found and (found := _DECLARE.match(candidate.content, found.end())):
        if _STRICT.search(re.sub(_REMARK, b"", found[1])):
            return Reading()
    message = "does not begin with declare(strict_types=1);"
    return Reading((Finding("strict-types", f"{candidate.place.path}:1", message),))


def shape(candidate: Candidate) -> Reading:
    """Whether the file declares exactly its class, at top level, in its namespace, and drops nothing else."""
    tree = _PARSER.parse(candidate.content).root_node
    before = _PARSER.parse(candidate.original).root_node
    findings = list(_declared_once(candidate, tree, before))
    if findings and tree.has_error and findings[0].rule == "class-missing":
        return Reading(cause="the grammar of this gate cannot read the whole file, and found no such class in the rest")
    known = {rule for rule, _, _ in _outside(before, candidate.original)}
    for rule, line, message in _outside(tree, candidate.content):
        if rule not in known:
            findings.append(Finding(rule, f"{candidate.place.path}:{line}", message))
    return Reading((*findings, *reaches(candidate, tree, before)))


def is_scaffold(content: bytes, class_: str) -> bool:
    """Whether no method of the class does anything yet: it is empty, or its methods only throw."""
    for node in _walk(_PARSER.parse(content).root_node):
        if node.type in _KINDS and _name(node) == class_:
            body = node.child_by_field_name("body")
            members = [inner for inner in (body.named_children if body else ()) if inner.type != "comment"]
            methods = [inner for inner in members if inner.type == "method_declaration"]
            steps = [_steps(method) for method in methods if _name(method) != "__construct"]
            idle = all(not step or _only_throws(step) for step in steps)
            return not members or (idle and any(_only_throws(step) for step in steps))
    return False


def _declared(nodes: Iterable[Node], namespace: str = "") -> Iterator[Declared]:
    """What is declared at the top level of a file, in the order of its text."""
    for node in nodes:
        if node.type == "namespace_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            inside = _text(name) if name else ""
            if body is None:
                namespace = inside
            else:
                yield from _declared(body.named_children, inside)
        elif node.type in _KINDS or node.type == "function_definition":
            yield Declared(namespace, _KINDS.get(node.type, "function"), _name(node), node.start_point.row + 1)
        elif node.type == "const_declaration":
            for element in node.named_children:
                if element.type == "const_element":
                    yield Declared(namespace, "constant", _text(element.named_children[0]), node.start_point.row + 1)


def _declared_once(candidate: Candidate, tree: Node, before: Node) -> Iterator[Finding]:
    place = candidate.place
    now, earlier = list(_declared(tree.named_children)), list(_declared(before.named_children))
    want = f"{place.module}\\{place.target.class_}" if place.module else place.target.class_
    own = [one for one in now if one.is_type and one.full == want]
    if not own:
        yield Finding("class-missing", place.path, _missing(tree, now, want, place.target.class_))
        return
    for again in own[1:]:
        yield Finding("class-twice", f"{place.path}:{again.line}", f"declares {want} a second time")
    kept = {one.full for one in earlier if one.is_type} | {want}
    for other in now:
        if other.is_type and other.full not in kept:
            message = f"declares the {other.kind} {other.full} beside {place.target.class_}; a file holds one class"
            yield Finding("class-beside", f"{place.path}:{other.line}", message)
    if before.has_error:  # what was broken as it stood dropped out for everybody already
        return
    # The class itself may have stood in another namespace than its place says; nothing else could mend that.
    own_name = {one.full for one in earlier if one.is_type and one.name == place.target.class_}
    for gone in sorted({one.full for one in earlier} - {one.full for one in now} - own_name):
        yield Finding("name-dropped", place.path, f"drops {gone}, which the file declared; others may use it")


def _missing(tree: Node, now: list[Declared], want: str, class_: str) -> str:
    types = [one for one in now if one.is_type]
    for one in types:
        if one.name == class_:
            namespace = f"the namespace {one.namespace}" if one.namespace else "no namespace"
            return f"declares {class_} in {namespace}; its place says {want}"
        if one.full.lower() == want.lower():
            return f"declares {one.full}; its place says {want}, in these letters"
    for node in _walk(tree):
        if node.type in _KINDS and _name(node) == class_:
            return f"declares {class_} at line {node.start_point.row + 1}, but not at its top level"
    instead = f"; it declares {', '.join(one.full for one in types)}" if types else ""
    return f"does not declare {want}{instead}"


def _outside(root: Node, content: bytes) -> Iterator[tuple[str, int, str]]:
    """Text that PHP would print when the file is loaded or never reads, and tags that not every host reads."""
    if content.startswith(b"\xef\xbb\xbf"):
        yield "text-outside", 1, "begins with a byte order mark, which PHP prints as text"
    for node in _walk(root, ("text_interpolation", "program")):
        line = node.start_point.row + 1
        if node.type == "text" and (node.text or b"").strip():
            yield "text-outside", line, "has text outside of <?php, which is printed whenever the class is loaded"
        if node.type == "php_tag" and _text(node).lower() != "<?php":
            yield "short-tag", line, f"opens with {_text(node)}; write <?php"
    for node in _walk(root) if _HALT in content.lower() else ():
        if node.type == "name" and (node.text or b"").lower() == _HALT and _goes_on(content[node.end_byte :]):
            line = node.start_point.row + 1
            yield "text-halted", line, "has text after __halt_compiler(), where PHP stops reading and no judge looks"


def _goes_on(text: bytes) -> bool:
    """Whether anything stands after the `();` of a `__halt_compiler`."""
    return bool(text.partition(b")")[2].strip().removeprefix(b";").removeprefix(b"?>").strip())


def _walk(node: Node, inside: tuple[str, ...] = ()) -> Iterator[Node]:
    """A node and those below it, outer ones first; with `inside`, only below nodes of these types."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if not inside or node.type in inside:
            waiting.extend(reversed(node.named_children))


def _steps(method: Node) -> list[Node]:
    body = method.child_by_field_name("body")
    return [node for node in (body.named_children if body else ()) if node.type != "comment"]


def _only_throws(steps: list[Node]) -> bool:
    return len(steps) == 1 and any(inner.type == "throw_expression" for inner in steps[0].named_children)


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return _text(name) if name else ""


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
