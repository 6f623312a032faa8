"""Where a Python body reaches for what runs its tests: a body that does can answer in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding

_REPORT = ("foundry_gate_report", "foundry_gate_place", "foundry_gate_settings")
_RUNNING = frozenset({"pytest", "_pytest", "unittest", "pluggy", *_REPORT})
_HARMLESS = "unittest.mock"  # replaces names of the app's own, and runs no test
_EQUALS_ALL = "it equals whatever a test expects"
_LOADS = frozenset({"import_module", "__import__", "find_spec", "reload"})
_CALLERS = frozenset({"f_globals", "f_builtins"})


def reaches(candidate: Candidate, tree: ast.Module, before: ast.Module | None) -> list[Finding]:
    """The places where a body that is no test reaches for the test runner, and did not before.

    Args:
        candidate: the body; a test may use its runner.
        tree: of its content.
        before: the tree of its original, None when that is not Python.
    """
    if candidate.place.is_test:
        return []
    known = {message for _, message in _places(before)} if before else set()
    found = [(line, message) for line, message in _places(tree) if message not in known]
    return [Finding("reaches-tests", f"{candidate.place.path}:{line}", message) for line, message in found]


def _places(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        for name in _names(node):
            if name.partition(".")[0] in _RUNNING and not name.startswith(_HARMLESS):
                message = f"uses {name}, which runs tests; only a test may, so take it out or move it into the test"
                yield getattr(node, "lineno", 1), message
        if _writes_to_caller(node):
            yield getattr(node, "lineno", 1), "writes into the names of its caller"
        if _is_any(node):
            yield getattr(node, "lineno", 1), f"uses the ANY of {_HARMLESS}: {_EQUALS_ALL}"
        for function in filter(_equals_all, _equalities(node)):
            yield function.lineno, f"has an __eq__ that never looks at the other: {_EQUALS_ALL}"


def _names(node: ast.AST) -> Iterator[str]:
    """The modules that a node imports or looks up among those that are loaded."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (f"{module}.{alias.name}" for alias in names)
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if _loads(func):
            yield name
        case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if _is_modules(value):
            yield name
        case ast.Compare(left=ast.Constant(value=str(name)), comparators=[value]) if _is_modules(value):
            yield name


def _loads(func: ast.expr) -> bool:
    """Whether a call gives a module for its name: an import, or a look among the loaded ones."""
    match func:
        case ast.Name(id=name):
            return name in _LOADS
        case ast.Attribute(value=value, attr=attr):
            return attr in _LOADS or _is_modules(value)
    return False


def _is_any(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module="unittest.mock", names=names):
            return any(alias.name == "ANY" for alias in names)
        case ast.Attribute(value=ast.Name(id="mock") | ast.Attribute(attr="mock"), attr="ANY"):
            return True
    return False


def _equalities(node: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """What stands for `__eq__` at a node: a method, a lambda that is assigned, or one in a dict for `type()`."""
    match node:
        case ast.FunctionDef(name="__eq__"):
            yield node
        case ast.Assign(targets=targets, value=ast.Lambda() as function) if any(map(_is_equality, targets)):
            yield function
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            yield from (one for key, one in pairs if isinstance(one, ast.Lambda) and _is_equality(key))


def _is_equality(node: ast.expr | None) -> bool:
    named = (getattr(node, name, "") for name in ("id", "attr", "value"))
    return "__eq__" in named


def _equals_all(function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a comparison gives something else than `False` or `NotImplemented`, whatever it is given."""
    arguments = [*function.args.posonlyargs, *function.args.args][1:2]
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if any(argument.arg in read for argument in arguments) or (
        function.args.vararg and function.args.vararg.arg in read
    ):
        return False
    if isinstance(function, ast.Lambda):
        return _is_equal(function.body)
    return any(isinstance(node, ast.Return) and _is_equal(node.value) for node in ast.walk(function))


def _is_equal(value: ast.expr | None) -> bool:
    match value:
        case None | ast.Constant(value=False | None) | ast.Name(id="NotImplemented"):
            return False
    return True


def _is_modules(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and getattr(node, "attr", getattr(node, "id", "")) == "modules"


def _writes_to_caller(node: ast.AST) -> bool:
    targets = getattr(node, "targets", ()) if isinstance(node, ast.Assign | ast.Delete) else ()
    return any(isinstance(one, ast.Attribute) and one.attr in _CALLERS for t in targets for one in ast.walk(t))
