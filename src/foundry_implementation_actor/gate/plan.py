"""What `make` would write: the files of a new plugin, class or test, or why there are none."""

from __future__ import annotations

import keyword
import os
from dataclasses import dataclass
from pathlib import PurePosixPath

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.gate.ask import bare
from foundry_implementation_actor.gate.house import House, Missing
from foundry_implementation_actor.gate.house_python import snake_case
from foundry_implementation_actor.gate.search import Plugin
from foundry_implementation_actor.gate.settings import PYTHON
from foundry_implementation_actor.gate.shadow import shadowed
from foundry_implementation_actor.gate.templates import ALIASES, Kind, php_text, python_text

Files = dict[str, bytes]
"""New files: their paths below the root, and what stands in them."""

_PHP_FOLDERS = {Kind.SERVICE: "Services", Kind.VALUE_OBJECT: "Models", Kind.INTERFACE: "Contracts"}

_PHP_WORDS = """
abstract and array as bool break callable case catch class clone const continue declare default die do echo else
elseif empty enddeclare endfor endforeach endif endswitch endwhile eval exit extends false final finally float fn
for foreach function global goto if implements include include_once instanceof insteadof int interface isset
iterable list match mixed namespace never new null object or parent print private protected public readonly require
require_once return self static string switch throw trait true try unset use var void while xor yield __class__
__dir__ __file__ __function__ __halt_compiler __line__ __method__ __namespace__ __trait__
"""
_PHP_RESERVED = frozenset(_PHP_WORDS.split())
"""What PHP lets no class be called, in lower case."""


@dataclass(frozen=True)
class Unmade:
    """Why nothing is made."""

    because: str


def planned(house: House, kind: str, plugin: str, name: str = "") -> Files | Unmade:
    """The new files for one thing that is wanted, or why this app does not get it.

    Args:
        house: the app.
        kind: a `Kind`, or one of its aliases.
        plugin: the plugin, new or (for all other kinds) there already.
        name: the new class; for a test, the class that it judges; nothing for a plugin.

    Raises:
        ActorError: BAD_REQUEST when no app could be given that: no such kind, a name too few or too many,
            or one that is no bare identifier.
    """
    wanted = _kind(kind)
    names = _names(wanted, plugin, name)
    reserved = _reserved(house, names)
    if reserved:
        return Unmade(f"{reserved} is a word of the language; choose another name")
    if wanted is Kind.PLUGIN:
        return _plugin(house, plugin)
    there = house.plugin(plugin)
    if isinstance(there, Missing):
        return Unmade(f"{there.message}; make the plugin first")
    return _test(house, there, name) if wanted is Kind.TEST else _class(house, wanted, there, name)


def _kind(word: str) -> Kind:
    wanted = ALIASES.get(word) or next((known for known in Kind if known == word), None)
    if wanted is None:
        raise ActorError(
            Code.BAD_REQUEST, f"{word[:80]!r} is not a kind", hint=f"make one of {', '.join(Kind)}", where="kind"
        )
    return wanted


def _names(kind: Kind, plugin: str, name: str) -> tuple[str, ...]:
    """The names that a thing of this kind has: its plugin's, and unless it is one, its own."""
    if kind is Kind.PLUGIN and name:
        raise ActorError(Code.BAD_REQUEST, "a plugin has one name", hint=f"leave out {name[:80]!r}", where="name")
    if kind is not Kind.PLUGIN and not name:
        what = "the class that it judges" if kind is Kind.TEST else "the new class"
        raise ActorError(Code.BAD_REQUEST, f"a {kind} needs a name beside its plugin: {what}", where="name")
    given = {"plugin": plugin} if kind is Kind.PLUGIN else {"plugin": plugin, "name": name}
    return tuple(bare(given, key) for key in given)


def _reserved(house: House, names: tuple[str, ...]) -> str:
    """The first name that the language keeps for itself; empty when none is. In PHP a plugin may have any."""
    words = names if house.settings.language == PYTHON else names[1:]
    return next((word for word in words if _is_reserved(house, word)), "")


def _is_reserved(house: House, name: str) -> bool:
    return keyword.iskeyword(name) if house.settings.language == PYTHON else name.lower() in _PHP_RESERVED


def _plugin(house: House, plugin: str) -> Files | Unmade:
    tree = house.tree(plugin)
    if tree is None:
        return Unmade(f"the settings have no place for a plugin {plugin}; name it in `plugins` of gate.yaml")
    if os.path.lexists(house.root / tree.source):
        return Unmade(f"there is a plugin {plugin} already ({tree.source})")
    if house.settings.language != PYTHON:
        return {f"{tree.source}/.gitkeep": b""}
    # A package that is there already may have no `__init__.py` for a reason; only new ones get one.
    new = [folder for folder in _packages(house, tree.source) if not os.path.lexists(house.root / folder)]
    return _unless_shadowing(house, {f"{folder}/__init__.py": b"" for folder in new})


def _packages(house: House, source: str) -> list[str]:
    """A plugin's folder and the packages above it, from the import folder down."""
    folders = [str(folder) for folder in (PurePosixPath(source), *PurePosixPath(source).parents)]
    return [folder for folder in reversed(folders) if folder not in {".", *house.settings.imports}]


def _class(house: House, kind: Kind, plugin: Plugin, name: str) -> Files | Unmade:
    declared = house.layout.sources(plugin, name) or house.layout.tests(plugin, name)
    if declared:
        return Unmade(f"{plugin.name}.{name} is there already ({declared[0].path})")
    folder = plugin.tree.source
    if not (house.root / folder).is_dir():
        return Unmade(f"{folder} is not a folder; a plugin of one file gets its classes by edit")
    if house.settings.language == PYTHON:
        path = f"{folder}/{_module_name(name)}.py"
        text = python_text(kind, name=name, plugin=plugin.name, module="")
    else:
        path = f"{folder}/{_PHP_FOLDERS[kind]}/{name}.php"
        text = php_text(kind, name=name, module=house.layout.module(house.settings, path))
    return _unless_there(house, path, text)


def _module_name(class_: str) -> str:
    """A module's name for a class; one that the language keeps for itself could not be imported."""
    name = snake_case(class_)
    return f"{name}_" if keyword.iskeyword(name) else name


def _test(house: House, plugin: Plugin, name: str) -> Files | Unmade:
    subject = house.find(Target(plugin.name, name), "make a test for")
    if isinstance(subject, Missing):
        return Unmade(subject.message)
    if subject.is_test or subject.own_test:
        said = "is a test itself" if subject.is_test else f"has its own test already ({subject.own_test})"
        return Unmade(f"{plugin.name}.{name} {said}")
    path = f"{plugin.tree.tests}/{_test_file(house, subject)}"
    test = f"Test{name}" if house.settings.language == PYTHON else PurePosixPath(path).stem
    declared = house.layout.tests(plugin, test)
    if declared:
        return Unmade(f"{plugin.name}.{test} is there already ({declared[0].path})")
    return _unless_there(house, path, _test_text(house, subject, path, test), is_test=True)


def _test_file(house: House, subject: Place) -> str:
    pattern, class_ = house.settings.test_names[0], subject.target.class_
    python = house.settings.language == PYTHON
    last = subject.module.replace("\\", ".").rpartition(".")[2]
    return pattern.replace("{class}", snake_case(class_) if python else class_).replace("{module}", last)


def _test_text(house: House, subject: Place, path: str, test: str) -> bytes:
    name = subject.target.class_
    if house.settings.language == PYTHON:
        return python_text(Kind.TEST, name=name, plugin=subject.target.plugin, module=subject.module)
    test_module = house.layout.module(house.settings, path)
    return php_text(Kind.TEST, name=name, module=subject.module, test=test, test_module=test_module)


def _unless_there(house: House, path: str, text: bytes, *, is_test: bool = False) -> Files | Unmade:
    if os.path.lexists(house.root / path):
        return Unmade(f"{path} is there already, and nothing is overwritten")
    return _unless_shadowing(house, {path: text}, is_test=is_test)


def _unless_shadowing(house: House, files: Files, *, is_test: bool = False) -> Files | Unmade:
    for path in files:
        because = shadowed(house.settings, path, house.layout.module(house.settings, path), is_test=is_test)
        if because:
            return Unmade(because)
    return files
