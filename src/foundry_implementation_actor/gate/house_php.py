"""Where a PHP app has its classes and tests: a class is the file of its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from foundry_implementation_actor.domain.unit import is_identifier
from foundry_implementation_actor.gate.search import Found, Plugin
from foundry_implementation_actor.gate.settings import Settings
from foundry_implementation_actor.gate.tree import File, Look


def sources(plugin: Plugin, class_: str) -> list[Found]:
    """The files of the source folder that are called as the class."""
    return [Found(file.path) for file in _source_files(plugin) if _stem(file.path) == class_]


def tests(plugin: Plugin, class_: str) -> list[Found]:
    """The files of the test folder that are called as the class."""
    return [Found(file.path) for file in _test_files(plugin) if _stem(file.path) == class_]


def own_tests(plugin: Plugin, class_: str, path: str) -> list[str]:
    """As `own_tests` of the settings say; else the files of the first of its test names that is there."""
    settings = plugin.settings
    namespace = module(settings, path)
    named = settings.own_tests.get(f"{namespace}\\{class_}") or settings.own_tests.get(class_)
    if named:
        return [named]
    found = [file.path for file in _test_files(plugin)]
    for name in settings.test_names:
        wanted = name.replace("{class}", class_).replace("{module}", namespace.rpartition("\\")[2])
        there = [path for path in found if PurePosixPath(path).name == wanted]
        if there:
            return there
    return []


def module(settings: Settings, path: str) -> str:
    """The namespace that a file's folder dictates; empty when no prefix is declared for it."""
    folder = str(PurePosixPath(path).parent)
    for prefix, base in sorted(settings.namespaces.items(), key=lambda item: len(item[1]), reverse=True):
        if base in {".", folder} or folder.startswith(f"{base}/"):
            inner = folder if base == "." else folder[len(base) + 1 :]
            return "\\".join(part for part in (prefix, *inner.split("/")) if part not in {"", "."})
    return ""


def declared(plugin: Plugin) -> Iterator[str]:
    """The classes of the source folder."""
    return (_stem(file.path) for file in _source_files(plugin))


def _source_files(plugin: Plugin) -> Iterator[File]:
    folder, tests = plugin.tree
    return Look(plugin.root, folder, _is_class_file, _is_open, without=tests).files()


def _test_files(plugin: Plugin) -> Iterator[File]:
    source, folder = plugin.tree
    return Look(plugin.root, folder, _is_class_file, _is_open, without=source).files()


def _is_class_file(name: str) -> bool:
    return name.endswith(".php") and is_identifier(name.removesuffix(".php"))


def _is_open(name: str) -> bool:
    return not name.startswith(".")


def _stem(path: str) -> str:
    return PurePosixPath(path).stem
