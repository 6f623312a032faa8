"""The house of an app: which one file a plugin and a class stand for (CONTRACT 8).

Everything is derived from two bare names by looking through the plugin's own folders; no path is
ever taken from a caller, and no link is followed. The work grows with the plugin, not with the app.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Self

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import LONGEST_NAME, Place, Target, is_identifier
from foundry_implementation_actor.gate import house_php, house_python
from foundry_implementation_actor.gate.app import SEARCH_PATH, app_of, app_root, settings_of
from foundry_implementation_actor.gate.search import Found, Layout, Plugin
from foundry_implementation_actor.gate.settings import PHP, PYTHON, Settings
from foundry_implementation_actor.gate.tree import Tree, is_there, names_below

_LAYOUTS: Mapping[str, Layout] = {PYTHON: house_python, PHP: house_php}
_NAMED = 5


@dataclass(frozen=True)
class Missing:
    """Why a target has no place. `unmade` says that nothing declares it, so that `make` is the way."""

    message: str
    unmade: bool = False


@dataclass(frozen=True)
class House:
    """An app's root, how it is laid out, and the app as its judges see it."""

    root: Path
    settings: Settings
    app: App

    @classmethod
    def open(cls, start: Path, *, upward: bool = True, search_path: str = SEARCH_PATH) -> Self:
        """The house of the app that holds a folder.

        Args:
            start: the app's root, or with `upward` a folder anywhere in the app.
            upward: whether the folders above count too.
            search_path: PATH for the app's tools and its judged code.

        Raises:
            ActorError: BAD_REQUEST when no app is there.
            ConfigError: its `gate.yaml` has faults; the message lists all of them.
        """
        root = app_root(start, upward=upward)
        settings = settings_of(root)
        return cls(root, settings, app_of(root, settings, search_path))

    @property
    def layout(self) -> Layout:
        """Where the app's language has its classes and tests."""
        return _LAYOUTS[self.settings.language]

    def app_for(self, plugin: str) -> App:
        """The app with the two folders of one plugin as its trees; the whole app's where there is no such plugin."""
        tree = self.tree(plugin)
        return replace(self.app, source=tree.source, tests=tree.tests) if tree else self.app

    def find(self, target: Target, act: str = "implement") -> Place | Missing:
        """The one file of a target: in its plugin's source folder, else in its test folder.

        Args:
            target: what is sought.
            act: what the caller is about to do with it, for the message.

        Raises:
            ActorError: BAD_REQUEST when a folder of the plugin is a link; UNFIT when one cannot be read.
        """
        for name in (target.plugin, target.class_):
            if not is_identifier(name):
                return Missing(
                    f"{name[:80]!r} is no bare name; give at most {LONGEST_NAME} letters, digits and _, never a path"
                )
        plugin = self.plugin(target.plugin)
        if isinstance(plugin, Missing):
            return plugin
        found = self.layout.sources(plugin, target.class_)
        if any(not it.beside for it in found):
            return self._place(plugin, target, found, is_test=False)
        tests = self.layout.tests(plugin, target.class_)
        if any(not it.beside for it in tests):
            return self._place(plugin, target, tests, is_test=True)
        return self._unmade(plugin, target, (*found, *tests), act)

    def plugin(self, name: str) -> Plugin | Missing:
        """A plugin by its name; missing when it has neither a source nor a test folder."""
        tree = self.tree(name)
        # A folder behind a link counts here, so that the search says that it is one.
        if tree and any(os.path.lexists(self.root / folder) for folder in tree):
            return Plugin(self.root, name, tree, self.settings)
        there = self.plugins()
        place = tree.source if tree else "one of the plugins that the settings name"
        return Missing(f"no plugin {name} in this app ({place}){_near(name, there) or _those(there)}", unmade=True)

    def tree(self, name: str) -> Tree | None:
        """The folders of a plugin, whether they are there or not; None when the layout has no place for it."""
        settings = self.settings
        if name in settings.plugins:
            return settings.plugins[name]
        if "{plugin}" not in settings.source and PurePosixPath(settings.source).name != name:
            return None
        return Tree(settings.source.replace("{plugin}", name), settings.tests.replace("{plugin}", name))

    def plugins(self) -> list[str]:
        """The names of the plugins whose source folder is there, in order."""
        settings = self.settings
        above, varying, _ = settings.source.partition("{plugin}")
        names = names_below(self.root, above.rstrip("/") or ".") if varying else [PurePosixPath(above).name]
        trees = {name: self.tree(name) for name in (*names, *settings.plugins) if is_identifier(name)}
        return sorted(name for name, tree in trees.items() if tree and is_there(self.root, tree.source))

    def _place(self, plugin: Plugin, target: Target, found: Sequence[Found], *, is_test: bool) -> Place | Missing:
        paths = [it.path for it in found if not it.beside]
        if len(paths) > 1:
            return Missing(f"{target} stands for more than one file: {_named(paths)}; rename one of them")
        module = self.layout.module(self.settings, paths[0])
        if is_test:
            return Place(target, paths[0], module, is_test=True)
        tests = self.layout.own_tests(plugin, target.class_, paths[0])
        if len(tests) > 1:
            hint = "rename one, or name the right one in `own_tests` of gate.yaml"
            return Missing(f"the own test of {target} may be more than one file: {_named(tests)}; {hint}")
        own = next((test for test in tests if is_there(self.root, test)), "")
        if tests and not own:
            return Missing(f"gate.yaml names {tests[0]} as the own test of {target}, and there is no such file")
        return Place(target, paths[0], module, is_test=False, own_test=own)

    def _unmade(self, plugin: Plugin, target: Target, found: Sequence[Found], act: str) -> Missing:
        if found:
            return Missing(f"{found[0].path}: {found[0].beside}; the gate lands what a module declares plainly")
        near = _near(target.class_, self.layout.declared(plugin))
        return Missing(unscaffolded(target.plugin, target.class_, act) + near, unmade=True)


def unscaffolded(plugin: str, class_: str, act: str) -> str:
    """What a caller is told when nothing declares a class.

    Args:
        plugin: the plugin that was looked through.
        class_: the class that it does not declare.
        act: what the caller wanted to do, such as `implement`.
    """
    return (
        f"cannot {act} {plugin}.{class_}: nothing in the plugin declares {class_}; "
        f"only `make` creates a class, so make it first"
    )


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _those(names: Sequence[str]) -> str:
    return f"; it has {_named(names)}" if names else ""


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{' and '.join(paths[:_NAMED])}{more}"
