"""What a house looks for in a plugin's folders; one module for each language has these names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from foundry_implementation_actor.gate.settings import Settings
from foundry_implementation_actor.gate.tree import Tree


@dataclass(frozen=True)
class Plugin:
    """A plugin of an app: its name and its two folders below the root."""

    root: Path
    name: str
    tree: Tree
    settings: Settings


class Found(NamedTuple):
    """Where something was found, and `beside`: why it only looks like what was sought, if so."""

    path: str
    beside: str = ""


class Layout(Protocol):
    """Where a language has its classes and tests. The functions of a module, all without side effects."""

    def sources(self, plugin: Plugin, class_: str) -> list[Found]:
        """The files of the plugin's source folder that declare the class, and what is nearly one."""
        ...

    def tests(self, plugin: Plugin, class_: str) -> list[Found]:
        """The files of its test folder that hold the test unit of this name, and what is nearly one."""
        ...

    def own_tests(self, plugin: Plugin, class_: str, path: str) -> list[str]:
        """The files that could be the own test of a class in `path`: one, none, or too many."""
        ...

    def module(self, settings: Settings, path: str) -> str:
        """The module or namespace that a path dictates."""
        ...

    def declared(self, plugin: Plugin) -> Iterator[str]:
        """The names that could be landed in a plugin, for a hint."""
        ...
