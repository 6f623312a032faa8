"""What `gate doctor` finds: which app this is, which judges can judge it, and what mends the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.gate.app import signs
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.isolate import held_refusal, isolation_refusal
from foundry_implementation_actor.gate.settings import FILE, PYTHON
from foundry_implementation_actor.gate.state import FOLDER
from foundry_implementation_actor.languages.python_place import TY
from foundry_implementation_actor.system.install import install
from foundry_implementation_actor.system.process import run_contained

_TIMEOUT_S = 20.0
_EXTRA = install("gate")
_PLUGINS_NAMED = 8

# Prints the interpreter's version, and pytest's or nothing.
_ASK_PYTHON = """
import importlib.metadata as metadata, platform
try:
    pytest = metadata.version("pytest")
except metadata.PackageNotFoundError:
    pytest = ""
print(platform.python_version(), pytest)
"""
# Prints PHP's version, and where php-parser is or nothing.
_ASK_PHP = "echo PHP_VERSION, ' ', stream_resolve_include_path('PhpParser/autoload.php');"


def examine(house: House) -> list[Finding]:
    """Everything about an app and its judges; nothing is changed."""
    python = house.settings.language == PYTHON
    judges = _python_judges if python else _php_judges
    return [_app(house), _plugins(house), *judges(house), _construction(house), _isolation(), _state(house.root)]


def _app(house: House) -> Finding:
    settings = house.settings
    found = ", ".join(signs(house.root)[:2])
    seen = f"{house.root} ({settings.language}, by {found}); sources {settings.source}, tests {settings.tests}"
    if settings.language == PYTHON and any(os.pathsep in str(house.root / folder) for folder in settings.imports):
        seen = f"{seen}; Python cannot import from a path with {os.pathsep!r} in it, so that nothing links here"
        return Finding("app", State.MISSING, seen, f"move the app to a path without {os.pathsep!r}")
    return Finding("app", State.OK, seen)


def _plugins(house: House) -> Finding:
    names = house.plugins()
    if not names:
        mend = f"make one (gate make plugin NAME), or say in {FILE} where the plugins are"
        return Finding("plugins", State.WARNING, f"none in {house.settings.source}", mend)
    more = f" and {len(names) - _PLUGINS_NAMED} more" if len(names) > _PLUGINS_NAMED else ""
    return Finding("plugins", State.OK, f"{len(names)}: {', '.join(names[:_PLUGINS_NAMED])}{more}")


def _python_judges(house: House) -> Iterator[Finding]:
    asked = _asked(house, ("-c", _ASK_PYTHON))
    if asked is None or not asked.ok:
        yield _no_interpreter(house, asked, f"name a Python in `interpreter` of {FILE}, or make .venv in the app")
        return
    version, _, pytest = asked.text.strip().partition(" ")
    program = " ".join(house.app.interpreter)
    yield Finding("syntax", State.OK, f"Python {version} ({program})")
    yield Finding("shape", State.OK, "built in")
    yield _linkage_by_ty()
    if pytest:
        yield Finding("own-test", State.OK, f"pytest {pytest}")
    else:
        mend = f"{program} -m pip install pytest"
        yield Finding("own-test", State.WARNING, f"{program} has no pytest: behaviour goes unjudged", mend)


def _linkage_by_ty() -> Finding:
    try:
        found = importlib.metadata.version("ty")
    except importlib.metadata.PackageNotFoundError:
        return Finding("linkage", State.WARNING, "ty is not installed: linkage goes unjudged", _EXTRA)
    if found != TY:
        return Finding("linkage", State.WARNING, f"ty {found}, but its rules are known for {TY}", _EXTRA)
    return Finding("linkage", State.OK, f"ty {found}, and a probe that imports the body")


def _php_judges(house: House) -> Iterator[Finding]:
    asked = _asked(house, ("-r", _ASK_PHP))
    if asked is None or not asked.ok:
        yield _no_interpreter(house, asked, "apt-get install php-cli")
        return
    version, _, parser = asked.text.strip().partition(" ")
    yield Finding("syntax", State.OK, f"PHP {version}")
    yield from _php_shape()
    yield _linkage_in_php(house, parser)
    yield _own_test_in_php(house)


def _php_shape() -> Iterator[Finding]:
    absent = [name for name in ("tree_sitter", "tree_sitter_php") if importlib.util.find_spec(name) is None]
    for judge in ("strict-types", "shape"):
        if absent:
            seen = f"{' and '.join(absent)} not installed: {judge} goes unjudged"
            yield Finding(judge, State.WARNING, seen, _EXTRA)
        else:
            yield Finding(judge, State.OK, "tree-sitter")


def _linkage_in_php(house: House, parser: str) -> Finding:
    if house.app.analyser:
        return Finding("linkage", State.OK, f"the app's own analyser ({' '.join(house.app.analyser)})")
    if not (house.root / "vendor" / "autoload.php").is_file():
        seen = "the app has no vendor/autoload.php: linkage goes unjudged"
        return Finding("linkage", State.WARNING, seen, "composer install")
    if parser:
        return Finding("linkage", State.OK, f"php-parser ({Path(parser).parent}), and a probe that loads the body")
    seen = "the app ships no vendor/bin/phpstan, and php-parser is not installed: linkage goes unjudged"
    return Finding(
        "linkage", State.WARNING, seen, "composer require --dev phpstan/phpstan, or apt-get install php-parser"
    )


def _own_test_in_php(house: House) -> Finding:
    runner = house.app.runner
    if runner and shutil.which(runner[0], path=house.app.environment.get("PATH")):
        if (house.root / "vendor" / "autoload.php").is_file():
            return Finding("own-test", State.OK, " ".join(runner))
        seen = (
            "the app has no vendor/autoload.php: behaviour goes unjudged where the tests have no bootstrap of their own"
        )
        return Finding("own-test", State.WARNING, seen, "composer install")
    seen = f"{runner[0]} cannot be run" if runner else "there is no PHPUnit"
    mend = "composer require --dev phpunit/phpunit, or apt-get install phpunit"
    return Finding("own-test", State.WARNING, f"{seen}: behaviour goes unjudged", mend)


def _construction(house: House) -> Finding:
    if house.app.construct:
        return Finding("construction", State.OK, " ".join(house.app.construct))
    seen = "the app does not say how it builds a class: construction goes unjudged"
    return Finding("construction", State.WARNING, seen, f"name the command in `construct` of {FILE}")


def _isolation() -> Finding:
    refusal = isolation_refusal()
    if not refusal:
        return Finding("isolation", State.OK, "bubblewrap, tried out")
    held = "what runs can change nothing" if not held_refusal() else "nothing holds what runs"
    seen = f"not here ({refusal}): a body stands at its live path while it is judged, and is taken away again; {held}"
    return Finding("isolation", State.WARNING, seen, "apt-get install bubblewrap, and allow user namespaces")


def _state(root: Path) -> Finding:
    folder = root / FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return Finding("state", State.MISSING, f"{folder} is a link or a file", f"remove {folder}")
    if os.access(folder if folder.is_dir() else root, os.W_OK | os.X_OK):
        return Finding("state", State.OK, f"{folder} can be written")
    return Finding("state", State.MISSING, f"{folder} cannot be written", f"give this user the right to write {root}")


def _no_interpreter(house: House, asked: Completed | None, mend: str) -> Finding:
    program = " ".join(house.app.interpreter)
    why = f"ended with {asked.code}: {asked.errors[-200:]}" if asked else "is not there"
    return Finding("syntax", State.MISSING, f"{program} {why}", mend)


def _asked(house: House, words: tuple[str, ...]) -> Completed | None:
    """What the app's interpreter answers; None when it is not there."""
    argv = (*house.app.interpreter, *words)
    try:
        return run_contained(Command(argv, house.root, house.app.environment, _TIMEOUT_S))
    except ActorError:
        return None
