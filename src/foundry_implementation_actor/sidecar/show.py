"""Every name that is derived from a sidecar, as a table."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from foundry_implementation_actor.domain.capability import Capability

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
    return found


def _session(capability: Capability) -> list[Row]:
    found = [Row("writes_only_under", " ".join(capability.writes_only_under))]
    for name, paths in (("scratch", capability.scratch), ("protected", capability.protected)):
        found += [Row(name, " ".join(paths))] if paths else []
    for source in capability.ground_in:
        command = shlex.join(capability.expand(source.fetch))
        found.append(Row(f"fetch({source.name})", f"{command} > {source.into} ({source.load})"))
    return found
