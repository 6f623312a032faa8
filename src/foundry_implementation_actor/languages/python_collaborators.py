"""Collaborators without a type: what a body does with them, no analyser can follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.languages.port import Reading
from foundry_implementation_actor.languages.python_tree import parse


def untyped(candidate: Candidate) -> Reading:
    """Clean, or not judged, when the class calls on collaborators and not one of them has a type."""
    tree = parse(candidate.content)
    class_ = candidate.place.target.class_
    node = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_), None) if tree else None
    if node is None:
        return Reading()
    used = _used(node)
    kept = {name: typed for name, typed in _kept(node) if name in used}
    loose = sorted(name for name, typed in kept.items() if not typed)
    if not loose:
        return Reading()
    said = f"{', '.join(loose)}: no type, so what is called on {'it' if len(loose) == 1 else 'them'} was not judged"
    return Reading(evidence=said) if len(loose) < len(kept) else Reading(cause=said)


def _kept(node: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """The attributes that `__init__` fills with its own parameters, and whether each has a type."""
    declared = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            arguments = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs][1:]
            typed = {argument.arg: argument.annotation is not None for argument in arguments}
            for attribute, parameter in _assignments(method):
                if parameter in typed:
                    yield attribute, typed[parameter] or attribute in declared


def _assignments(method: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                name = _of_self(target)
                if name:
                    yield name, node.value.id


def _used(node: ast.ClassDef) -> set[str]:
    """The attributes of self that something is asked of: `self.x.y`."""
    return {_of_self(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Attribute)} - {""}


def _of_self(node: ast.expr) -> str:
    """The name of `self.name`, or nothing."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return ""
