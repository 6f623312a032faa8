"""What a sidecar declares, and every name that is derived from it.

Nothing in this package spells a capability: each identifier below is computed from `capability`
and `source_repo`. Peers recompute the same strings and parse them, so the rules are a contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Load = Literal["eager", "on-demand"]

PLACEHOLDERS = ("capability", "registry_repo", "source_repo")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SPLIT_SEGMENT = "cap"

MOST_REMEDIATIONS = 5
"""How many further sessions a component's red `verify` may ask for in one run, at most."""


@dataclass(frozen=True)
class Component:
    """One part of the capability's repository that is built into one image.

    `path` ends in `/` and is relative to the repository's root; `dockerfile` is the directory that
    holds the Dockerfile; `verify` is an argv to run before anything is pushed, or empty; `remediate` is how
    many further sessions of a run may be given its red output, 0 to `MOST_REMEDIATIONS`.
    """

    name: str
    path: str
    dockerfile: str
    verify: tuple[str, ...] = ()
    remediate: int = 0


@dataclass(frozen=True)
class Grounding:
    """One knowledge source: what it answers, the argv that fetches it, the file it goes into."""

    name: str
    answers: str
    fetch: tuple[str, ...]
    into: str
    load: Load

    @property
    def eager(self) -> bool:
        """Whether the session gets it in full before its first turn."""
        return self.load == "eager"


@dataclass(frozen=True)
class Capability:
    """One capability's use of the actor, as its sidecar declares it (CONTRACT 1 and 2).

    `gate` is the directory of the app whose gate is a session's only pen, with `/` at its end and empty for
    the repository's root; None when sessions write freely.
    """

    engine: str
    capability: str
    source_repo: str
    registry_repo: str
    components: tuple[Component, ...]
    ground_in: tuple[Grounding, ...] = ()
    scratch: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    gate: str | None = None

    @property
    def actor_name(self) -> str:
        """`<capability>-implementation`, also the git author's name."""
        return f"{self.capability}-implementation"

    @property
    def actor_slug(self) -> str:
        """The actor's name in lower case with `.` turned into `-`."""
        return self.actor_name.lower().replace(".", "-")

    @property
    def git_author_name(self) -> str:
        """The git `user.name` of every commit that this actor makes."""
        return self.actor_name

    @property
    def git_author_email(self) -> str:
        """The git `user.email` of every commit that this actor makes."""
        return f"{self.actor_slug}@users.noreply.github.com"

    @property
    def capability_path(self) -> str:
        """The registry path: the id in lower case, split at its `cap` segment, which is dropped."""
        segments = self.capability.lower().split(".")
        at = segments.index(_SPLIT_SEGMENT)
        return ".".join(segments[:at]) + "/" + ".".join(segments[at + 1 :])

    @property
    def writes_only_under(self) -> tuple[str, ...]:
        """The component roots, in the sidecar's order: the only places a session may change."""
        return tuple(component.path for component in self.components)

    def clone_prefix(self, task_id: str) -> str:
        """The prefix of the temporary directory in which one task is worked on."""
        return f"{self.actor_slug}-{task_id}-"

    def image_name(self, component: str) -> str:
        """The name whose tags version a component's image, `<capability>-<component>`."""
        return f"{self.capability.lower()}-{component}"

    def image_ref(self, registry: str, component: str, version: str) -> str:
        """The full image reference; `registry` may carry a port and a path, no scheme."""
        return f"{registry.rstrip('/')}/{self.capability_path}/{component}:{version}"

    def component_for(self, path: str) -> Component | None:
        """The component that owns a repository path: the longest declared prefix, or None."""
        owners = [c for c in self.components if path.startswith(c.path)]
        return max(owners, key=lambda c: len(c.path), default=None)

    def components_for(self, paths: Iterable[str]) -> list[str]:
        """The names of the components that own these paths, in the sidecar's order, each once."""
        touched = {owner.name for path in paths if (owner := self.component_for(path))}
        return [component.name for component in self.components if component.name in touched]

    def expand(self, argv: Sequence[str]) -> list[str]:
        """Fill `{capability}`, `{registry_repo}` and `{source_repo}`; other braces pass untouched.

        An unknown placeholder passes untouched here too: `lint` and loading refuse it before.
        """
        return [_PLACEHOLDER.sub(self._placeholder, word) for word in argv]

    def _placeholder(self, match: re.Match[str]) -> str:
        name = match.group(1)
        return str(getattr(self, name)) if name in PLACEHOLDERS else match.group(0)


def unknown_placeholders(word: str) -> list[str]:
    """The `{lower_case}` words of a fetch argument that name none of the three known ones."""
    return [name for name in _PLACEHOLDER.findall(word) if name not in PLACEHOLDERS]
