"""Every name that is derived from a sidecar, as a table."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.capability import Capability, Component

_TASK = "<task>"
_VERSION = "<version>"


class Row(NamedTuple):
    """One derived name and its value."""

    name: str
    value: str


def rows(capability: Capability, *, registry: str = "<registry>") -> list[Row]:
    """The derived names (CONTRACT 2) and what the sidecar declares, in reading order.

    Args:
        capability: a checked capability.
        registry: the image registry, with its port and path, without a scheme.
    """
    return [*_identity(capability), *_images(capability, registry), *_session(capability)]


def _identity(capability: Capability) -> list[Row]:
    return [
        Row("capability", capability.capability),
        Row("engine", capability.engine),
        Row("source_repo", capability.source_repo),
        Row("registry_repo", capability.registry_repo),
        Row("actor_name", capability.actor_name),
        Row("actor_slug", capability.actor_slug),
        Row("git user.name", capability.git_author_name),
        Row("git user.email", capability.git_author_email),
        Row("clone_prefix", capability.clone_prefix(_TASK)),
        Row("branch", f"impl/{_TASK}"),
        Row("capability_path", capability.capability_path),
    ]


def _images(capability: Capability, registry: str) -> list[Row]:
    found = []
    for component in capability.components:
        name = component.name
        found += [
            Row(f"path({name})", component.path),
            Row(f"dockerfile({name})", component.dockerfile),
            Row(f"image_name({name})", capability.image_name(name)),
            Row(f"version tag({name})", f"{capability.image_name(name)}/vX.Y.Z"),
            Row(f"image_ref({name})", capability.image_ref(registry, name, _VERSION)),
        ]
        if component.verify:
            found.append(Row(f"verify({name})", _verify(component)))
    return found


def _verify(component: Component) -> str:
    command, most = " ".join(component.verify), component.remediate
    return f"{command} (when red, up to {most} {'remediation' if most == 1 else 'remediations'})" if most else command


def _session(capability: Capability) -> list[Row]:
    found = [Row("writes_only_under", " ".join(capability.writes_only_under))]
    for name, paths in (("scratch", capability.scratch), ("protected", capability.protected)):
        found += [Row(name, " ".join(paths))] if paths else []
    if capability.gate is not None:
        found.append(Row("gate", f"the only pen, of the app in {capability.gate or './'}"))
    for source in capability.ground_in:
        command = shlex.join(capability.expand(source.fetch))
        found.append(Row(f"fetch({source.name})", f"{command} > {source.into} ({source.load})"))
    return found


def structure(capability: Capability, *, registry: str = "<registry>") -> dict[str, Any]:
    """The same as `rows`, as plain values under plain identifiers, for a program to read."""
    return {
        "capability": capability.capability,
        "engine": capability.engine,
        "source_repo": capability.source_repo,
        "registry_repo": capability.registry_repo,
        "actor_name": capability.actor_name,
        "actor_slug": capability.actor_slug,
        "git_user_name": capability.git_author_name,
        "git_user_email": capability.git_author_email,
        "clone_prefix": capability.clone_prefix(_TASK),
        "branch": f"impl/{_TASK}",
        "capability_path": capability.capability_path,
        "components": [_component(capability, component, registry) for component in capability.components],
        "writes_only_under": list(capability.writes_only_under),
        "scratch": list(capability.scratch),
        "protected": list(capability.protected),
        "gate": capability.gate,
        "ground_in": [{**asdict(source), "fetch": capability.expand(source.fetch)} for source in capability.ground_in],
    }


def _component(capability: Capability, component: Component, registry: str) -> dict[str, Any]:
    image_name = capability.image_name(component.name)
    return {
        "name": component.name,
        "path": component.path,
        "dockerfile": component.dockerfile,
        "image_name": image_name,
        "version_tag": f"{image_name}/vX.Y.Z",
        "image_ref": capability.image_ref(registry, component.name, _VERSION),
        **({"verify": list(component.verify), "remediate": component.remediate} if component.verify else {}),
    }
