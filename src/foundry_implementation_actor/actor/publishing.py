"""How this actor publishes images, from the settings."""

from __future__ import annotations

from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.delivery.images.buildah import Buildah
from foundry_implementation_actor.delivery.images.buildctl import Buildctl
from foundry_implementation_actor.delivery.images.login import passwords
from foundry_implementation_actor.delivery.images.port import Builder
from foundry_implementation_actor.delivery.images.publish import Publisher
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.domain.error import ActorError

_HOME = "/nonexistent"


def publisher(settings: Settings) -> Publisher | None:
    """What builds and publishes images; None when they are off."""
    if settings.builder == "none":
        return None
    environment = {"PATH": settings.path, "HOME": _HOME, **settings.passed_on}
    if settings.docker_config:
        environment["DOCKER_CONFIG"] = settings.docker_config
    registry = Registry(settings.image_registry, settings.docker_config, environment, settings.registry_tls)
    return Publisher(_builder(settings, registry), registry)


def all_secrets(settings: Settings) -> tuple[str, ...]:
    """What must not be shown: the settings' own secrets, and what the file of the registry's login holds.

    A file that cannot be read is told by a run.
    """
    own = settings.secrets()
    if settings.builder == "none":
        return own
    try:
        return (*own, *filter(None, passwords(settings.docker_config)))
    except ActorError:
        return own


def _builder(settings: Settings, registry: Registry) -> Builder:
    environment, timeout_s = registry.environment, settings.build_timeout_s
    if settings.builder == "buildctl":
        return Buildctl(settings.buildkit_host, environment, timeout_s, settings.build_network, registry.tls)
    return Buildah(registry, environment, timeout_s, settings.build_network)
