"""Not run: `mypy --strict` reads how an embedder uses the public names, as the contract has them."""

from __future__ import annotations

from typing import Any

from papeete_actor_synchronous_messaging.actor import Actor

from foundry_implementation_actor import (
    CapabilityConfig,
    ClaudeCodeEngine,
    Component,
    ConfigError,
    Grounding,
    Report,
    Settings,
    cards_path,
    conformance,
    lint,
    make_implement_task,
    render_cards,
    serve,
    version,
)


def embed(mailbox: Any) -> Any:
    config = CapabilityConfig.load(".")
    return Actor.from_card(
        ".",
        mailbox=mailbox,
        engines={config.engine: ClaudeCodeEngine(config)},
        actions={"implement-task": make_implement_task(config)},
    )


def engines(config: CapabilityConfig) -> list[ClaudeCodeEngine]:
    limited = ClaudeCodeEngine(
        config,
        github_token="token",
        claude_bin="claude",
        clone_timeout=1,
        fetch_timeout=1,
        session_timeout=1,
        max_turns=1,
        assess_timeout=1,
        assess_max_turns=1,
    )
    return [limited, ClaudeCodeEngine(config, **Settings.from_env({}).engine_kwargs())]


def names(config: CapabilityConfig) -> list[str]:
    component: Component = config.components[0]
    grounding: Grounding = config.ground_in[0]
    owner: Component | None = config.component_for("backend/a.py")
    owners: list[str] = list(config.components_for(["backend/a.py"]))
    derived = [config.actor_name, config.actor_slug, config.clone_prefix("TASK-1"), config.capability_path]
    images = [config.image_name(component.name), config.image_ref("registry.example", component.name, "1.0.0")]
    words: list[str] = list(config.expand(grounding.fetch))
    return [*derived, *images, *words, *config.writes_only_under, *owners, owner.name if owner else "", version()]


def reports() -> list[Report]:
    try:
        config = CapabilityConfig.from_dict({}, source="a mapping")
    except ConfigError as error:
        return [Report(errors=[error.message])]
    render_cards(config, cards_path())
    return [lint("."), conformance.check(".")]


def service() -> None:
    serve(".", port=8080)
