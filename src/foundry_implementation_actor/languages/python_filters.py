"""Which findings of ty stand. Each rule here takes away a kind of wrong refusal.

Some are decided on the syntax tree. Others are put to the running program as a question, because it knows
what no analyser sees: a module found by an import hook, a class that a decorator gave an attribute.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from foundry_implementation_actor.languages.python_ty import TyFinding

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_OF_CLASS = re.compile(r"(?:type\[|<class ')?([A-Za-z_]\w*)(?:\]|'>|\[.*\])?")
_FUNCTION_TYPE = re.compile(r"_Wrapped\[|def |bound method|function |\(|Overload\[|<wrapper|<function|_lru_cache")
_OVERRIDES = frozenset(
    {"incompatible-method-override", "incompatible-property-override", "lost-keyword-for-regular-parameter"}
)
_KEEPS_ATTRIBUTES = frozenset({"dataclass", "final", "total_ordering", "runtime_checkable"})
# A value announced as one of these is most often one of those; to use what only that has links.
_CONCRETE: dict[str, type] = {
    "Collection": list, "Iterable": list, "Sequence": list, "Mapping": dict, "Set": set, "AbstractSet": set,
}  # fmt: skip
_EXPECTED_ERRORS = {
    "import-not-found": {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", ""},
    "missing-module-member": {"ImportError", "AttributeError", "Exception", "BaseException", ""},
    "missing-attribute": {"AttributeError"},
    "unresolved-reference": {"NameError"},
}
_CALL_ERRORS = {"TypeError"}


class Question(NamedTuple):
    """Something that only the running program knows, and whether the finding stands when it is so."""

    kind: str
    first: str
    second: str
    stands_when: bool


@dataclass(frozen=True)
class Source:
    """A file that ty was asked about: its text by lines, its tree, and the module it is."""

    lines: list[bytes]
    tree: ast.Module
    package: str

    def way(self, finding: TyFinding) -> list[ast.AST]:
        """The nodes around a finding, outermost first."""
        line = self.lines[finding.line - 1] if finding.line <= len(self.lines) else b""
        text = line.decode("utf-8", "replace")
        return _way(self.tree, (finding.line, len(text[: finding.column - 1].encode())))


def _way(node: ast.AST, at: tuple[int, int]) -> list[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.expr | ast.excepthandler | ast.alias | ast.keyword | ast.arg):
            inner = _way(child, at)
            if inner:
                return [child, *inner]
        elif (child.lineno, child.col_offset) <= at < (child.end_lineno or 0, child.end_col_offset or 0):
            return [child, *_way(child, at)]
    return []


def stands(finding: TyFinding, source: Source, overrides: Mapping[str, Mapping[str, bool]]) -> bool | Question:
    """Whether a finding refuses: yes, no, or a question to put to the running program.

    Args:
        finding: of ty.
        source: the file that it is in.
        overrides: what the running program said of each `Class.method` that overrides another.
    """
    way = source.way(finding)
    if _expected(finding, way):
        return False
    if finding.rule in _OVERRIDES:
        return _override(finding, way, overrides)
    decide = _DECISIONS.get(finding.rule)
    return decide(finding, way, source) if decide else True


def _override(
    finding: TyFinding, way: Sequence[ast.AST], overrides: Mapping[str, Mapping[str, bool]]
) -> bool | Question:
    """An override may not break a promise of the app's own; what the standard library promises is looser."""
    method = next((node.name for node in reversed(way) if isinstance(node, _FUNCTIONS)), "")
    class_ = next((node.name for node in reversed(way) if isinstance(node, ast.ClassDef)), "")
    base = finding.quoted[-1].rpartition(".")[0]
    if method.startswith("__"):
        return False
    seen = overrides.get(f"{class_}.{method}")
    if seen is None:
        return Question("of-app", base, "", stands_when=True) if base else True
    # Narrowed parameters are named by the probe. A parameter of a narrower type is common and links.
    return seen["of_app"] and seen["returns_differ"] and not seen["narrows"] and not seen["generates"]


def _arity(_: TyFinding, way: Sequence[ast.AST], __: Source) -> bool | Question:
    """How many arguments `*args` and `**options` bring is known at run time only."""
    call = next((node for node in reversed(way) if isinstance(node, ast.Call)), None)
    spread = call is not None and (
        any(isinstance(argument, ast.Starred) for argument in call.args)
        or any(keyword.arg is None for keyword in call.keywords)
    )
    return not spread


def _import(finding: TyFinding, _: Sequence[ast.AST], source: Source) -> bool | Question:
    name = finding.quoted[0]
    level = len(name) - len(name.lstrip("."))
    if level:
        package = source.package.split(".")
        name = ".".join([*package[: len(package) - level + 1], name.lstrip(".")])
    return Question("import", name, "", stands_when=False)


def _member(finding: TyFinding, _: Sequence[ast.AST], __: Source) -> bool | Question:
    module, name = finding.quoted[:2]
    return Question("member", module, name, stands_when=False)


def _name(finding: TyFinding, _: Sequence[ast.AST], source: Source) -> bool | Question:
    if any(isinstance(node, ast.Call) and _called(node) == "globals" for node in ast.walk(source.tree)):
        return False
    return Question("name", finding.quoted[0], "", stands_when=False)


def _argument(finding: TyFinding, _: Sequence[ast.AST], __: Source) -> bool | Question:
    expected = re.search(r"Expected `(\w+)`, found `(\w+)`", finding.message)
    return Question("argument", expected[1], expected[2], stands_when=True) if expected else False


def _attribute(finding: TyFinding, way: Sequence[ast.AST], source: Source) -> bool | Question:
    message = finding.message
    if message.startswith("Unresolved attribute"):
        return False  # It is assigned to here, and so comes to be.
    if message.startswith(("Module ", "Submodule ")):
        return _member(finding, way, source)
    of_type, name = finding.quoted[0], finding.quoted[-1]
    if _is_loose(of_type, name) or name in _assigned(source.tree) or name in set(_guarded(way, source.tree)):
        return False
    if of_type.startswith("Self@"):
        return _own_attribute(name, way, source.tree)
    named = _OF_CLASS.fullmatch(of_type)
    return Question("attribute", named[1], name, stands_when=False) if named else True


def _is_loose(of_type: str, name: str) -> bool:
    """Whether a type says too little of a value to refuse what is asked of it."""
    named = _OF_CLASS.fullmatch(of_type)
    concrete = named is not None and hasattr(_CONCRETE.get(named[1]), name)
    return concrete or of_type == "object" or "None" in of_type.split(" | ") or bool(_FUNCTION_TYPE.match(of_type))


def _own_attribute(name: str, way: Sequence[ast.AST], tree: ast.Module) -> bool | Question:
    node = next((node for node in reversed(way) if isinstance(node, ast.ClassDef)), None)
    if node is None:
        return True
    if _is_mixin(node, tree) or _sets_by_name(node) or not _known_decorators(node):
        return False
    return Question("attribute", node.name, name, stands_when=False)


def _is_mixin(node: ast.ClassDef, tree: ast.Module) -> bool:
    """A class without bases that others build on: what it uses of itself may be theirs."""
    if [base for base in node.bases if _last_name(base) not in {"object", "ABC", "Protocol", "Generic"}]:
        return False
    named_so = "Mixin" in node.name
    others = [other for other in ast.walk(tree) if isinstance(other, ast.ClassDef)]
    return named_so or any(_last_name(base) == node.name for other in others for base in other.bases)


def _sets_by_name(node: ast.ClassDef) -> bool:
    """Whether a class gives itself attributes whose names are not in its text."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            first = call.args[0] if call.args else None
            on_itself = isinstance(first, ast.Name) and first.id in {"self", "cls"}
            if on_itself and _called(call) in {"setattr", "update_wrapper"}:
                return True
            if _called(call) == "update" and "__dict__" in ast.dump(call.func):
                return True
            if _called(call) == "update" and isinstance(call.func, ast.Attribute) and "'vars'" in ast.dump(call.func):
                return True
    return False


def _known_decorators(node: ast.ClassDef) -> bool:
    return all(_last_name(decorator) in _KEEPS_ATTRIBUTES for decorator in node.decorator_list)


def _assigned(tree: ast.Module) -> set[str]:
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def _guarded(way: Sequence[ast.AST], tree: ast.Module) -> Iterator[str]:
    """The attributes that the class or function around a finding asks for before it uses them."""
    scope = next((node for node in way if isinstance(node, _DEFINITIONS)), tree)
    for call in ast.walk(scope):
        match call:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield name


def _expected(finding: TyFinding, way: Sequence[ast.AST]) -> bool:
    """Whether the text around a finding says that it may go wrong: a `try`, a `suppress`, a `raises`."""
    errors = _EXPECTED_ERRORS.get(finding.rule, _CALL_ERRORS)
    for outer, inner in pairwise(way):
        if isinstance(outer, ast.Try) and _try_expects(outer, inner, errors, finding.rule):
            return True
        if isinstance(outer, ast.With | ast.AsyncWith) and any(_allows(item, errors) for item in outer.items):
            return True
    return False


def _try_expects(node: ast.Try, inner: ast.AST, errors: set[str], rule: str) -> bool:
    caught = any(set(_caught(handler)) & errors for handler in node.handlers)
    # The fallback import of `except ImportError` is the one that is missing where the first is there.
    return caught and (inner in node.body or (rule == "import-not-found" and inner in node.handlers))


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return [""]
    return [_last_name(one) for one in getattr(handler.type, "elts", [handler.type])]


def _allows(item: ast.withitem, errors: set[str]) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call) or _called(call) not in {
        "suppress",
        "raises",
        "assertRaises",
        "assertRaisesRegex",
    }:
        return False
    return any(_last_name(one) in errors for arg in call.args for one in getattr(arg, "elts", [arg]))


def _called(call: ast.Call) -> str:
    return _last_name(call.func)


def _last_name(node: ast.AST) -> str:
    """The last name of `a.b.c`, `c(...)` or `c[...]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last_name(inner)
    return ""


_Decide = Callable[[TyFinding, Sequence[ast.AST], Source], bool | Question]
_DECISIONS: dict[str, _Decide] = {
    "import-not-found": _import,
    "missing-module-member": _member,
    "missing-attribute": _attribute,
    "unresolved-reference": _name,
    "invalid-argument-type": _argument,
    "missing-argument": _arity,
    "too-many-positional-arguments": _arity,
    "parameter-already-assigned": _arity,
}
