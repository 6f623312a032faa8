"""Which app this is: its root, its language, and how its tools are called."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.json_text import read_json
from foundry_implementation_actor.gate.settings import FILE, HOUSES, MAX_BYTES, PHP, PYTHON, Settings
from foundry_implementation_actor.gate.tree import is_there
from foundry_implementation_actor.system.files import read_below

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where the app's tools are looked for when the caller does not say."""

_PROJECT_FILES = {"pyproject.toml": PYTHON, "composer.json": PHP}
_HOUSE_FOLDERS = {"src/plugins": PYTHON, "src/Plugins": PHP}
_PHP_HOUSE = {"App": "src", "App\\Tests": "tests"}


def app_root(start: Path, *, upward: bool = True) -> Path:
    """The real path of the nearest app: the first folder with one of the signs of an app.

    Args:
        start: a folder of the app.
        upward: whether the folders above `start` count too.

    Raises:
        ActorError: BAD_REQUEST when there is none.
    """
    here = Path(os.path.realpath(start))
    if not here.is_dir():
        raise ActorError(Code.BAD_REQUEST, "is no folder", hint="name the app's root", where=str(start))
    for folder in (here, *here.parents) if upward else (here,):
        if signs(folder):
            return folder
    known = ", ".join((FILE, *_PROJECT_FILES))
    where = "here or in a folder above" if upward else "here"
    hint = f"go to an app, or write a {FILE} at its root"
    raise ActorError(Code.BAD_REQUEST, f"no app {where} (none of {known})", hint=hint, where=str(here))


def signs(folder: Path) -> tuple[str, ...]:
    """What says that a folder is an app's root; for a `gate.yaml` or project file, its name."""
    files = tuple(name for name in (FILE, *_PROJECT_FILES) if (folder / name).is_file())
    return files + tuple(f"{name}/" for name in _HOUSE_FOLDERS if (folder / name).is_dir())


def settings_of(root: Path) -> Settings:
    """How the app at a root is laid out and judged.

    Raises:
        ConfigError: `gate.yaml` has faults, or the app's language is not to be told without one.
    """
    language = _language(root)
    settings = _settings(root, HOUSES[language] if language else None)
    if settings.language == PHP:
        return replace(settings, namespaces=_first(settings.namespaces, _composed(root), _PHP_HOUSE))
    return settings


def _settings(root: Path, house: Settings | None) -> Settings:
    content = read_below(root, FILE, MAX_BYTES + 1)
    if content is None and house:
        return house
    # Start-up counts, and most apps have no such file: the reader of YAML waits for one.
    from foundry_implementation_actor.gate.settings_file import read_settings  # noqa: PLC0415

    return read_settings(content or b"", str(root / FILE), house)


def _first(*tables: Mapping[str, str]) -> dict[str, str]:
    """Namespaces with their folders, each folder as the first table that has it says."""
    folders: dict[str, str] = {}
    for table in tables:
        for prefix, folder in table.items():
            folders.setdefault(folder, prefix)
    return {prefix: folder for folder, prefix in folders.items()}


def _language(root: Path) -> str | None:
    """The one language that project files (or, where they do not agree, house folders) speak for."""
    found = signs(root)
    files = {language for name, language in _PROJECT_FILES.items() if name in found}
    folders = {language for name, language in _HOUSE_FOLDERS.items() if f"{name}/" in found}
    agreed = files if len(files) == 1 else folders
    return next(iter(agreed)) if len(agreed) == 1 else None


def app_of(root: Path, settings: Settings, search_path: str) -> App:
    """The app as the judges see it; its trees are those above the plugins.

    Args:
        root: the app's real path.
        settings: see there.
        search_path: the folders with programs, joined with `:`; the judged code sees them as PATH.
    """
    interpreter = _argv(root, settings.interpreter) or _interpreter(root, settings.language)
    return App(
        root=root,
        language=settings.language,
        source=_above(settings.source),
        tests=_above(settings.tests),
        imports=settings.imports,
        interpreter=interpreter,
        analyser=_argv(root, settings.analyser) or _own(root, settings, "vendor/bin/phpstan"),
        runner=_argv(root, settings.runner) or _runner(root, settings, search_path),
        construct=_argv(root, settings.construct),
        environment=_environment(root, settings, search_path),
        probe_timeout_s=settings.probe_timeout_s,
        test_timeout_s=settings.test_timeout_s,
        network=settings.network,
    )


def _interpreter(root: Path, language: str) -> tuple[str, ...]:
    if language == PHP:
        return ("php",)
    own = root / ".venv" / "bin" / "python"
    return (str(own),) if os.access(own, os.X_OK) else (sys.executable,)


def _runner(root: Path, settings: Settings, search_path: str) -> tuple[str, ...]:
    """The test runner that was found; empty in Python, where it is a module of the interpreter."""
    if settings.language == PYTHON:
        return ()
    system = shutil.which("phpunit", path=search_path)
    return _own(root, settings, "vendor/bin/phpunit") or ((system,) if system else ())


def _own(root: Path, settings: Settings, program: str) -> tuple[str, ...]:
    shipped = settings.language == PHP and (root / program).is_file()
    return (str(root / program),) if shipped else ()


def _argv(root: Path, words: tuple[str, ...]) -> tuple[str, ...]:
    """A command whose program, when it is written with a `/`, lies in the app."""
    return (str(root / words[0]), *words[1:]) if words and "/" in words[0] else words


def _environment(root: Path, settings: Settings, search_path: str) -> Mapping[str, str]:
    whole = {"PATH": search_path, "LANG": "C.UTF-8"}
    if settings.language == PYTHON:
        folders = (os.path.normpath(root / folder) for folder in settings.imports)
        whole |= {"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**whole, **settings.environment}


def _above(pattern: str) -> str:
    """The folder above every plugin of a pattern."""
    return pattern.partition("{plugin}")[0].rstrip("/") or "."


def _composed(root: Path) -> dict[str, str]:
    """The psr-4 namespaces of a `composer.json`; none where it cannot be read."""
    content = read_below(root, "composer.json", MAX_BYTES)
    try:
        composed = read_json((content or b"{}").decode("utf-8-sig"), "composer.json")
    except ValueError:  # the gate works without; composer itself will say what is wrong
        return {}
    found: dict[str, str] = {}
    for section in ("autoload", "autoload-dev"):
        for prefix, folders in _psr_4(composed, section).items():
            named = _below(folders if isinstance(folders, list) else [folders])
            # A folder that is still to be made has its namespace too; of several, one that is there goes first.
            folder = next((name for name in named if is_there(root, name)), next(iter(named), None))
            if prefix and folder:
                found[prefix.rstrip("\\")] = folder
    return found


def _below(folders: list[object]) -> list[str]:
    """Those that are folders below the root, or the root itself."""
    plain = [os.path.normpath(folder or ".") for folder in folders if isinstance(folder, str)]
    return [folder for folder in plain if folder != ".." and not folder.startswith(("/", "../"))]


def _psr_4(composed: object, section: str) -> Mapping[str, object]:
    for key in (section, "psr-4"):
        composed = composed.get(key) if isinstance(composed, Mapping) else None
    return composed if isinstance(composed, Mapping) else {}
