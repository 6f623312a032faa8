"""Where things are for a Python app: its import roots, its interpreter, this package's own scripts."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Place
from foundry_implementation_actor.system.install import install

INSIDE = Path(__file__).with_name("inside")
TY_RULES = Path(__file__).with_name("ty.toml")
TY = "0.0.108"
OWN_VERSION = sys.version_info[:2]

# Interpreters that were asked already; one process judges many bodies of few apps.
_versions: dict[tuple[str, ...], tuple[int, int]] = {}


def import_roots(app: App, place: Place | None = None) -> list[Path]:
    """The folders that the app's modules are imported from; the one that fits a place comes first."""
    own = _fitting(app, place) if place is not None and not place.is_test else []
    told = [Path(os.path.normpath(app.root / folder)) for folder in app.imports]
    return list(dict.fromkeys([*own, *(told or [_by_layout(app)])]))


def _fitting(app: App, place: Place) -> list[Path]:
    """The folder from which the place's path gives its module, when there is one."""
    parts = PurePosixPath(place.path).with_suffix("").parts
    names = place.module.split(".")
    whole = parts[:-1] if parts[-1] == "__init__" else parts
    return [app.root.joinpath(*whole[: -len(names)])] if list(whole[-len(names) :]) == names else []


def _by_layout(app: App) -> Path:
    return app.root / "src" if PurePosixPath(app.source).parts[:1] == ("src",) else app.root


def search_path(app: App, roots: Sequence[Path]) -> list[str]:
    """Import roots and what the app's own environment adds, each once."""
    added = app.environment.get("PYTHONPATH", "").split(os.pathsep)
    return list(dict.fromkeys([*map(str, roots), *filter(None, added)]))


def environment(app: App, roots: Sequence[Path]) -> dict[str, str]:
    """The app's environment with its modules importable and no bytecode written."""
    path = os.pathsep.join(search_path(app, roots))
    return {"PATH": os.defpath, **app.environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def interpreter_version(app: App) -> tuple[int, int] | None:
    """The version of the app's interpreter when it is known without asking it."""
    if app.interpreter and os.path.realpath(app.interpreter[0]) == os.path.realpath(sys.executable):
        return OWN_VERSION
    return _versions.get(app.interpreter)


def remember_version(app: App, found: tuple[int, int]) -> None:
    """Note what an interpreter said its version is."""
    _versions[app.interpreter] = found


def ty_argv(app: App) -> tuple[str, ...] | str:
    """The pinned ty of this package's own environment or the app's analyser; or why there is none."""
    if app.analyser:
        return app.analyser
    found = _installed("ty")
    if found != TY:
        return f"it needs ty {TY}, which the `gate` extra brings, and finds {found or 'none'}; {install('gate')}"
    return (str(Path(sysconfig.get_path("scripts")) / "ty"),)


def _installed(package: str) -> str:
    """The version of an installed package, empty when it is not there; importlib.metadata takes 20 ms to load."""
    found = (info.name for folder in sys.path for info in Path(folder).glob(f"{package}-*.dist-info"))
    return next(found, "").removeprefix(f"{package}-").removesuffix(".dist-info")
