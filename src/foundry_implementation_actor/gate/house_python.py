"""Where a Python app has its classes and tests: by the syntax tree of its modules, not by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from foundry_implementation_actor.gate.search import Found, Plugin
from foundry_implementation_actor.gate.settings import Settings
from foundry_implementation_actor.gate.tree import File, Look
from foundry_implementation_actor.languages.python_tree import parse

_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CLASS_LINE = re.compile(rb"^class\s+([A-Za-z_]\w*)", re.MULTILINE)


def sources(plugin: Plugin, class_: str) -> list[Found]:
    """The modules whose top level declares the class."""
    return list(_declaring(_source_files(plugin), class_))


def tests(plugin: Plugin, class_: str) -> list[Found]:
    """The test modules that declare a class of this name, or are called so and hold functions only."""
    by_class = list(_declaring(_test_files(plugin), class_))
    return by_class or [
        Found(file.path, _classes_instead(file.read(), class_))
        for file in _test_files(plugin)
        if _file_name(file.path) == f"{class_}.py" and _is_test_module(class_)
    ]


def own_tests(plugin: Plugin, class_: str, path: str) -> list[str]:
    """As `own_tests` of the settings say; else the test modules of the first of its names that is there."""
    settings = plugin.settings
    module_path = module(settings, path)
    named = settings.own_tests.get(f"{module_path}.{class_}") or settings.own_tests.get(module_path)
    if named:
        return [named]
    last = module_path.rpartition(".")[2]
    found = [file.path for file in _test_files(plugin)]
    # The test of a private module is often called without the underscore.
    for called in dict.fromkeys((last, last.lstrip("_"))):
        for name in settings.test_names:
            wanted = test_name(name, class_, called)
            there = [path for path in found if _file_name(path) == wanted]
            if there:
                return there
    return []


def test_name(pattern: str, class_: str, module: str) -> str:
    """The file name that one of the `test_names` gives for a class in a module."""
    return pattern.replace("{class}", snake_case(class_)).replace("{module}", module)


def module(settings: Settings, path: str) -> str:
    """The dotted name that a module is imported by, from the import folder that holds it."""
    folders = sorted(settings.imports, key=len, reverse=True)
    inside = next((path.removeprefix(f"{folder}/") for folder in folders if path.startswith(f"{folder}/")), path)
    parts = PurePosixPath(inside).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def declared(plugin: Plugin) -> Iterator[str]:
    """The classes of the source folder, read line by line."""
    for file in _source_files(plugin):
        yield from (name.decode() for name in _CLASS_LINE.findall(file.read()))


def snake_case(class_: str) -> str:
    """`OrderService` as `order_service`, `HTTPServer` as `http_server`."""
    return _NEW_WORD.sub("_", class_).lower()


def _declaring(files: Iterator[File], class_: str) -> Iterator[Found]:
    name = class_.encode()
    mentions = re.compile(rb"\bclass[\s\\]+%s\b" % name)
    for file in files:
        content = file.read()
        if name not in content or not mentions.search(content):
            continue
        tree = parse(content)
        line = _line_below(tree.body, class_) if tree else 0
        if tree and any(_is_class(node, class_) for node in tree.body):
            yield Found(file.path)
        elif tree is None and re.search(rb"^class[\s\\]+%s\b" % name, content, re.MULTILINE):
            yield Found(file.path)  # broken as it stands: only by landing a whole body can it be mended
        elif line:
            yield Found(file.path, f"line {line} declares {class_}, but below an `if`, `try` or the like")


def _is_class(node: ast.AST, class_: str) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == class_


def _line_below(body: Sequence[ast.stmt], class_: str) -> int:
    """The line of a class that a module declares, but not plainly; 0 when it does not."""
    plain = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.Match)
    for outer in body:
        if isinstance(outer, plain):
            for node in ast.walk(outer):
                if isinstance(node, ast.ClassDef) and node.name == class_:
                    return node.lineno
    return 0


def _classes_instead(content: bytes, name: str) -> str:
    """Why a test module is not named by its own name: it has test classes."""
    tree = parse(content)
    classes = [node.name for node in (tree.body if tree else ()) if isinstance(node, ast.ClassDef) and _tests(node)]
    return f"{name} is named by its test class: {' or '.join(classes)}" if classes else ""


def _tests(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _is_test_module(name: str) -> bool:
    return name.startswith("test_") or name.endswith("_test")


def _source_files(plugin: Plugin) -> Iterator[File]:
    folder, tests = plugin.tree
    return Look(plugin.root, folder, _is_module, str.isidentifier, without=tests).files()


def _test_files(plugin: Plugin) -> Iterator[File]:
    source, folder = plugin.tree
    return Look(plugin.root, folder, _is_module, _is_open, without=source).files()


def _is_module(name: str) -> bool:
    return name.endswith(".py") and name.removesuffix(".py").isidentifier()


def _is_open(name: str) -> bool:
    return not name.startswith(".") and name not in {"__pycache__", "node_modules"}


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
