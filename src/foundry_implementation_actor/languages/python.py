"""Python for the landing gate: `port.Language`, name by name."""

from __future__ import annotations

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place
from foundry_implementation_actor.languages.port import Reading
from foundry_implementation_actor.languages.python_link import linkage
from foundry_implementation_actor.languages.python_place import environment, import_roots
from foundry_implementation_actor.languages.python_syntax import syntax
from foundry_implementation_actor.languages.python_tests import own_test
from foundry_implementation_actor.languages.python_tree import is_scaffold, shape

__all__ = [
    "NAME",
    "class_name",
    "command_environment",
    "is_scaffold",
    "linkage",
    "own_test",
    "shape",
    "strict_types",
    "syntax",
]

NAME = "python"


def strict_types(candidate: Candidate) -> Reading | None:  # noqa: ARG001 - as `port.Language` names it
    """Python has no such thing."""
    return None


def class_name(place: Place) -> str:
    """The module and the class, dotted."""
    return f"{place.module}.{place.target.class_}"


def command_environment(app: App) -> dict[str, str]:
    """The app's environment with its modules importable."""
    return environment(app, import_roots(app))
