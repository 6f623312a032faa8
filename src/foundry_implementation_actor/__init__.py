"""Turns one task into one verified branch, for the capability that a sidecar names.

What is exported here is the public API; everything else may move. Names are imported when they are
first used, so that importing the package costs nothing that is not needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
    from foundry_implementation_actor.actor.handler import make_implement_task
    from foundry_implementation_actor.actor.settings import Settings
    from foundry_implementation_actor.definition import conformance
    from foundry_implementation_actor.definition.cards import cards_path
    from foundry_implementation_actor.definition.render import render_cards
    from foundry_implementation_actor.domain.capability import Component, Grounding
    from foundry_implementation_actor.domain.error import ConfigError, HandlerError, ServeError, SettingsError
    from foundry_implementation_actor.domain.report import Report
    from foundry_implementation_actor.service.serve import serve
    from foundry_implementation_actor.sidecar.config import CapabilityConfig
    from foundry_implementation_actor.sidecar.lint import lint
    from foundry_implementation_actor.system.release import version

_HOMES = {
    "CapabilityConfig": "sidecar.config",
    "ClaudeCodeEngine": "actor.engine",
    "Component": "domain.capability",
    "ConfigError": "domain.error",
    "Grounding": "domain.capability",
    "HandlerError": "domain.error",
    "Report": "domain.report",
    "ServeError": "domain.error",
    "Settings": "actor.settings",
    "SettingsError": "domain.error",
    "cards_path": "definition.cards",
    "lint": "sidecar.lint",
    "make_implement_task": "actor.handler",
    "render_cards": "definition.render",
    "serve": "service.serve",
    "version": "system.release",
}

__all__ = [
    "CapabilityConfig",
    "ClaudeCodeEngine",
    "Component",
    "ConfigError",
    "Grounding",
    "HandlerError",
    "Report",
    "ServeError",
    "Settings",
    "SettingsError",
    "cards_path",
    "conformance",
    "lint",
    "make_implement_task",
    "render_cards",
    "serve",
    "version",
]


def __getattr__(name: str) -> Any:
    if name == "conformance":
        return import_module(f"{__name__}.definition.conformance")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
