"""What the syntax tree of a Python module says: what it declares, and whether it is a scaffold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.port import Reading
from foundry_implementation_actor.languages.python_reach import reaches

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_PARTS = ("body", "orelse", "finalbody")


def parse(content: bytes) -> ast.Module | None:
    """The tree of a module, or None when it is not Python."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def shape(candidate: Candidate) -> Reading:
    """Whether the body declares what it claims once, at top level, and drops no other public name."""
    tree = parse(candidate.content)
    if tree is None:
        return Reading(cause="it is not Python, see syntax")
    place = candidate.place
    if place.is_test and place.target.class_ == place.module.rpartition(".")[2]:
        return Reading(tuple(_no_test(tree, place.path)))
    findings = [*_declared_once(tree, place.target.class_, place.path), *_dropped(candidate, tree)]
    findings += reaches(candidate, tree, parse(candidate.original))
    return Reading(tuple(findings))


def _no_test(tree: ast.Module, path: str) -> Iterator[Finding]:
    tests = [node for node in _flat(tree.body) if isinstance(node, _FUNCTIONS) and node.name.startswith("test")]
    cases = [node for node in _flat(tree.body) if isinstance(node, ast.ClassDef) and _holds_tests(node)]
    if not tests and not cases:
        yield Finding("no-test", path, "declares no test function and no test class")


def _holds_tests(node: ast.ClassDef) -> bool:
    return any(isinstance(inner, _FUNCTIONS) and inner.name.startswith("test") for inner in node.body)


def _declared_once(tree: ast.Module, class_: str, path: str) -> Iterator[Finding]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_]
    if not classes:
        yield Finding("class-missing", path, _missing(tree, class_))
    for again in classes[1:]:
        yield Finding("class-twice", f"{path}:{again.lineno}", f"declares {class_} a second time")
    for node in tree.body[tree.body.index(classes[0]) + 1 :] if classes else ():
        if node not in classes and _takes_away(node, class_):
            message = f"gives the name {class_} to something else after declaring it"
            yield Finding("class-rebound", f"{path}:{node.lineno}", message)


def _missing(tree: ast.Module, class_: str) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == class_:
            return f"declares {class_} at line {node.lineno}, but not at its top level"
    others = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    instead = f"; it declares {', '.join(others)}" if others else ""
    return f"does not declare the class {class_}{instead}"


def _takes_away(node: ast.stmt, class_: str) -> bool:
    """Whether a statement of the module, or one below its loops and conditions, gives the name away.

    What is made of the class itself (`Cart = register(Cart)`) may bear its name.
    """
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name == class_
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return any((alias.asname or alias.name.partition(".")[0]) == class_ for alias in names)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _rebinds(node, class_) and not _uses(value, class_)
        case ast.AnnAssign() | ast.AugAssign():
            return False
    below = [inner for part in _PARTS for inner in getattr(node, part, ())]
    below += [inner for branch in _branches(node) for inner in branch.body]
    named = any(getattr(branch, "name", None) == class_ for branch in _branches(node))
    return named or _rebinds(node, class_) or any(_takes_away(inner, class_) for inner in below)


def _branches(node: ast.stmt) -> list[ast.ExceptHandler | ast.match_case]:
    return [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]


def _rebinds(node: ast.stmt, class_: str) -> bool:
    """Whether the statement's own expressions store or delete the name, those in its body left out."""
    inside = {id(inner) for part in (*_PARTS, "handlers") for inner in getattr(node, part, ())}
    waiting: list[ast.AST] = [inner for inner in ast.iter_child_nodes(node) if id(inner) not in inside]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name) and one.id == class_ and isinstance(one.ctx, ast.Store | ast.Del):
            return True
        if isinstance(one, ast.MatchAs | ast.MatchStar) and one.name == class_:
            return True
        if not isinstance(one, (ast.Lambda, ast.stmt, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            waiting.extend(ast.iter_child_nodes(one))
    return False


def _uses(value: ast.expr, class_: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == class_ for one in ast.walk(value))


def _dropped(candidate: Candidate, tree: ast.Module) -> Iterator[Finding]:
    before = parse(candidate.original)
    if before is None or _names_anything(tree):
        return
    for name in sorted(_public(before) - set(_bound(tree)) - {candidate.place.target.class_}):
        message = f"drops {name}, which the module declared; others may import it"
        yield Finding("name-dropped", candidate.place.path, message)


def _names_anything(tree: ast.Module) -> bool:
    """Whether the module may have names that its tree does not show: a star import, a `__getattr__`."""
    for node in _flat(tree.body):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            return True
    return False


def _public(tree: ast.Module) -> set[str]:
    """What a module declares for others: its definitions, its variables, what `__all__` lists."""
    declared = {name for node in _flat(tree.body) if not _is_import(node) for name in _binds(node)}
    return {name for name in declared if not name.startswith("_")} | set(_listed(tree))


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _listed(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            for item in getattr(node.value, "elts", ()):
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield item.value


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in _flat(tree.body):
        yield from _binds(node)


def _binds(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            alias = getattr(node, "name", None)  # `type X = ...`, which Python 3.11 does not know
            if isinstance(alias, ast.Name):
                yield alias.id


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also those below a plain `if`, `try`, `with`, loop or `match`."""
    for node in body:
        yield node
        if isinstance(node, _DEFINITIONS):
            continue
        for part in _PARTS:
            yield from _flat(getattr(node, part, ()))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _flat(inner.body)


def is_scaffold(content: bytes, class_: str) -> bool:
    """Whether no method of the class does anything yet; a class without methods is no scaffold."""
    tree = parse(content)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == class_:
            methods = [inner for inner in node.body if isinstance(inner, _FUNCTIONS)]
            working = [method for method in methods if method.name != "__init__" and not _does_nothing(method)]
            return not _has_substance(node) or (not working and any(_raises(method) for method in methods))
    return False


def _has_substance(node: ast.ClassDef) -> bool:
    """Whether the class holds anything but a text and `pass`."""
    return any(not isinstance(inner, ast.Pass) and not _is_text(inner) for inner in node.body)


def _does_nothing(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(isinstance(node, ast.Pass) or _is_text(node) or _not_implemented(node) for node in method.body)


def _raises(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(_not_implemented(node) for node in method.body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _not_implemented(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
