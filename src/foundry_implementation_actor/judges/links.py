"""Where symbolic links of a commit lead, walked name by name through the other links of that commit."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.change import LINK, Change

_MOST_LINKS = 40
"""On one way, as in Linux."""


def links_after(before: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """The links of a commit, path to target, from those of its base and what changed."""
    gone = {change.path for change in changes}
    kept = {path: target for path, target in before.items() if path not in gone}
    return kept | {change.path: change.target for change in changes if change.mode == LINK}


def leads_out(path: str, links: Mapping[str, str], capability: Capability) -> bool:
    """Whether the link at `path` ends outside of the component that owns it, or nowhere that can be told."""
    component = capability.component_for(path)
    end = _end(path, links)
    return component is None or end is None or not f"{end}/".startswith(component.path)


def bent(before: Mapping[str, str], changes: Sequence[Change], capability: Capability) -> Iterator[str]:
    """The links that did not change themselves and lead out of their component only since this change."""
    if not any(LINK in {change.mode, change.mode_before} for change in changes):
        return
    after = links_after(before, changes)
    changed = {change.path for change in changes}
    for path in after:
        if path in changed or capability.component_for(path) is None:
            continue
        if leads_out(path, after, capability) and not leads_out(path, before, capability):
            yield path


def _end(path: str, links: Mapping[str, str]) -> str | None:
    """The repository path at which a link ends; None when it leaves the repository or goes in a circle."""
    way: list[str] = []
    ahead = [path]
    followed = 0
    while ahead:
        part, _, rest = ahead.pop().partition("/")
        if rest:
            ahead.append(rest)
        if part in {"", "."}:
            continue
        if part == "..":
            if not way:
                return None
            way.pop()
            continue
        target = links.get("/".join([*way, part]))
        if target is None:
            way.append(part)
            continue
        followed += 1
        if followed > _MOST_LINKS or not target or posixpath.isabs(target):
            return None
        ahead.append(target)
    return "/".join(way)
