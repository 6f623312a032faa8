"""Import one module of an app and say what does not link; runs in the app's own interpreter.

It reads `{nonce, module, class, file, root, is_test, questions}` as JSON from stdin and writes one line to
stdout: the nonce, a space, and `{"findings": [...], "overrides": {...}, "true": [...], "stopped": false}`.
Those questions come back under `true` that hold in the running program. `{"findings": [], "broke": why}` says
that the module could be imported, and not looked into. Standard library only, Python 3.9
and later.
"""

from __future__ import annotations

import builtins
import fcntl
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_Parameter = inspect.Parameter
_POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
_Compared = dict[str, dict[str, bool]]
_OUT_OF_THE_WAY = 200


def finding(rule: str, message: str, line: int = 0) -> dict[str, Any]:
    """One thing that does not link."""
    return {"rule": rule, "message": message, "line": line}


class Signature:
    """The parameters of a method, sorted as a caller sees them."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.all = list(signature.parameters.values())
        self.positional = [p for p in self.all if p.kind in _POSITIONAL]
        self.any_more = any(p.kind is _Parameter.VAR_POSITIONAL for p in self.all)
        self.any_name = any(p.kind is _Parameter.VAR_KEYWORD for p in self.all)
        self.names = {p.name for p in self.all}
        self.named_only = [p for p in self.all if p.kind is _Parameter.KEYWORD_ONLY]


def narrows(base: Signature, over: Signature, *, by_name: bool) -> list[str]:
    """What a call that is right for `base` may no longer do with `over`; names count only when `by_name`."""
    if not over.positional and not over.any_more:
        return ["takes no self"] if base.positional else []
    if base.any_more and base.any_name:
        return []  # A base that takes anything promises nothing in particular.
    return [*_fewer(base, over), *_changed(base, over, by_name=by_name), *_more(base, over)]


def _fewer(base: Signature, over: Signature) -> Iterator[str]:
    wanted, given = len(base.positional) - 1, len(over.positional) - 1
    if given < wanted and not over.any_more:
        yield f"accepts {given} positional arguments, its base {wanted}"
    for parameter in base.named_only:
        if parameter.name not in over.names and not over.any_name:
            yield f"does not take {parameter.name}="


def _changed(base: Signature, over: Signature, *, by_name: bool) -> Iterator[str]:
    fewer = len(over.positional) < len(base.positional)
    for at in range(1, min(len(base.positional), len(over.positional))):
        old, new = base.positional[at], over.positional[at]
        named = old.kind is _Parameter.POSITIONAL_OR_KEYWORD and old.name not in over.names
        if by_name and named and not over.any_name and not fewer:
            yield f"renames the parameter {old.name} to {new.name}"
        if old.default is not _Parameter.empty and new.default is _Parameter.empty:
            yield f"needs {new.name}, which its base does not"


def _more(base: Signature, over: Signature) -> Iterator[str]:
    for parameter in over.positional[len(base.positional) :]:
        if parameter.default is _Parameter.empty and parameter.name not in base.names and not base.any_more:
            yield f"needs {parameter.name}, which its base does not have"
    for parameter in over.named_only:
        if parameter.default is _Parameter.empty and parameter.name not in base.names:
            yield f"needs {parameter.name}=, which its base does not have"


def of_app(thing: object, root: str) -> bool:
    """Whether a class is written in the app itself, not installed into its environment."""
    path = getattr(sys.modules.get(getattr(thing, "__module__", "")), "__file__", None) or ""
    installed = "site-packages" in path or "dist-packages" in path
    return bool(path) and not installed and os.path.realpath(path).startswith(root + os.sep)


def plain(function: object) -> Signature | None:
    """The signature of a plain function as it is written; None when it is wrapped or something else."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        return None
    try:
        return Signature(inspect.signature(function))
    except (TypeError, ValueError):
        return None


def methods(cls: type) -> Iterator[tuple[str, Any, Signature]]:
    """The plain methods in a class's own text, without the special ones."""
    for name, function in list(vars(cls).items()):
        signature = None if name.startswith("__") else plain(function)
        if signature is not None:
            yield name, function, signature


def look_at(cls: type, root: str) -> tuple[list[dict[str, Any]], _Compared]:
    """What is wrong with a class's methods, and how each differs from what it overrides."""
    found, compared = [], {}
    for name, function, over in methods(cls):
        title, line = f"{cls.__name__}.{name}", function.__code__.co_firstlineno
        base = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
        old = plain(vars(base)[name]) if base else None
        if base is None and not over.all:
            found.append(finding("no-self", f"{title} takes no self", line))
        if base is not None and old is not None:
            said = narrows(old, over, by_name=of_app(base, root))
            found += [finding("override-narrows", f"{title} {one} ({base.__name__})", line) for one in said]
            compared[title] = _differences(vars(base)[name], function) | {
                "of_app": of_app(base, root),
                "narrows": bool(said),
            }
    return found, compared


def _differences(old: Any, new: Any) -> dict[str, bool]:
    """Whether what they return differs: by annotation, or because one has to be awaited."""
    returned = [
        (getattr(function, "__annotations__", {}).get("return"), inspect.iscoroutinefunction(function))
        for function in (old, new)
    ]
    return {"returns_differ": returned[0] != returned[1], "generates": inspect.isasyncgenfunction(new)}


def abstract_left(cls: type) -> list[dict[str, Any]]:
    """The inherited abstract methods that a class leaves open, unless it is meant to be abstract itself."""
    # A metaclass may answer for names that nobody gave it.
    left = sorted(vars(cls).get("__abstractmethods__", ())) if inspect.isabstract(cls) else []
    meant = {base.__name__ for base in cls.__bases__} & {"ABC", "Protocol"}
    if meant or any(name in vars(cls) for name in left):
        return []
    return [finding("abstract-left", f"{cls.__name__} does not implement {name}") for name in left]


def resolve(name: str, module: object) -> type | None:
    """A class by its bare name: in the module's own namespace first, then in what was loaded last."""
    for place in (module, *reversed(list(sys.modules.values()))):
        thing = getattr(place, "__dict__", {}).get(name)
        if isinstance(thing, type):
            return thing
    return None


def is_member(name: str, member: str) -> bool:
    """Whether a module has a member or a module inside."""
    return hasattr(importlib.import_module(name), member) or importlib.util.find_spec(f"{name}.{member}") is not None


def has_attribute(cls: type | None, attribute: str) -> bool:
    """Whether a class has an attribute, or answers for any."""
    return cls is not None and (hasattr(cls, attribute) or hasattr(cls, "__getattr__"))


def breaks_promise(wanted: type | None, given: type | None, root: str) -> bool:
    """Whether a class of the app stands where the app's own Protocol or ABC is wanted and is not one."""
    if wanted is None or given is None or not of_app(wanted, root) or not of_app(given, root):
        return False
    if getattr(wanted, "_is_protocol", False):
        members = {**vars(wanted), **vars(wanted).get("__annotations__", {})}
        return any(not hasattr(given, name) for name in members if not name.startswith("_"))
    return bool(getattr(wanted, "__abstractmethods__", None)) and not issubclass(given, wanted)


def holds(question: list[str], module: object, root: str) -> bool:
    """Whether a question is true in the running program."""
    kind, first, second = question
    if kind == "import":
        return importlib.util.find_spec(first) is not None
    if kind == "member":
        return is_member(first, second)
    if kind == "name":
        return hasattr(module, first) or hasattr(builtins, first)
    if kind == "attribute":
        return has_attribute(resolve(first, module), second)
    if kind == "of-app":
        return of_app(resolve(first, module), root)
    return breaks_promise(resolve(first, module), resolve(second, module), root)


def ask(questions: list[list[str]], module: object, root: str) -> list[list[str]]:
    """The questions that are true; one that cannot be answered is not."""
    true = []
    for question in questions:
        try:
            if holds(question, module, root):
                true.append(question)
        except Exception as error:  # noqa: BLE001 - answering imports modules, which may raise anything
            sys.stderr.write(f"{question}: {error}\n")
    return true


def judge(asked: dict[str, Any]) -> dict[str, Any]:
    """Import the module, first of all modules, and look at what it declares."""
    name, root = asked["module"], asked["root"]
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - an import may raise anything, SystemExit too
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno or 0 for frame in frames if frame.filename == asked["file"]]
        raised = type(error).__name__
        return {
            "findings": [finding(f"import-{raised}", f"{raised}: {error}", lines[-1] if lines else 0)],
            "stopped": True,
        }
    try:
        found, compared = look_over(module, asked)
        return {"findings": found, "overrides": compared, "true": ask(asked["questions"], module, root)}
    except BaseException as error:  # noqa: BLE001 - what a module holds may answer any question by raising
        return {"findings": [], "broke": f"the probe cannot look into {name}: {type(error).__name__}"}


def look_over(module: object, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], _Compared]:
    """What is wrong with the classes that a module declares, and how they differ from their bases."""
    found: list[dict[str, Any]] = []
    compared: _Compared = {}
    for cls in list(getattr(module, "__dict__", {}).values()):
        if is_class(cls) and cls.__module__ == asked["module"]:
            narrowed, differences = look_at(cls, asked["root"])
            found += [*narrowed, *(abstract_left(cls) if cls.__name__ == asked["class"] else ())]
            compared.update(differences)
    if not asked["is_test"]:
        found += class_there(module, asked["module"], asked["class"])
    return found, compared


def is_class(thing: object) -> bool:
    """Whether a thing is a class, without asking the thing itself: a proxy may raise then, or lie."""
    return issubclass(type(thing), type)


def class_there(module: object, name: str, class_: str) -> list[dict[str, Any]]:
    """Whether the name of the class leads to one; what a decorator made of it may be anything that can be called."""
    there = getattr(module, "__dict__", {}).get(class_)
    if there is None and not hasattr(module, class_):
        return [finding("class-gone", f"after its import, {name} has no {class_}")]
    if there is None:
        there = getattr(module, class_)
    if is_class(there) or callable(there):
        return []
    return [finding("class-gone", f"after its import, {name}.{class_} is no class, but {type(there).__name__}")]


def main() -> None:
    """Answer once; see the module's first lines. What the module prints goes to stderr."""
    here = Path(__file__).resolve().parent
    # The folder of this script is no place of the app's.
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != here]
    asked = json.loads(sys.stdin.read())
    nonce = asked.pop("nonce")
    # A module that closes the descriptors it sees first does not close this one.
    output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    os.dup2(2, 1)
    answer = json.dumps(judge(asked))
    os.write(output, f"\n{nonce} {answer}\n".encode())
    # What the module left running (threads, exit handlers) is not waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
