"""The version of a component's image, from the tag that its name has and the exported commit."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from papeete_version.version import normalize_name

from foundry_implementation_actor.domain.capability import Capability, Component
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.system.process import run

# `compute` runs git with the environment of its process, so it gets a process with a clean one.
_COMPUTE = "import sys; from papeete_version.version import compute; print(compute(*sys.argv[1:]))"
_TIMEOUT_S = 60.0


def untagged(git: Git, base: str, capability: Capability, components: Sequence[Component]) -> list[str]:
    """The `git tag` commands that are still to be run, one for each component without a version tag."""
    return [
        f"git tag {capability.image_name(component.name)}/v0.1.0 <commit>"
        for component in components
        if not _tagged(git, base, capability.image_name(component.name))
    ]


def image_version(export: Path, capability: Capability, component: Component, task_id: str, path: str) -> str:
    """What papeete-version computes for a component in the exported commit, `0.1.0-task-014-28c22a0`.

    Args:
        export: a work tree that holds the commit, with its git directory and tags.
        capability: names the image.
        component: whose folder's last commit counts.
        task_id: becomes the feature name, normalised.
        path: the PATH on which git is found.

    Raises:
        ActorError: UNFIT when it cannot be computed, such as for a tag that was moved since.
    """
    feature = normalize_name(task_id)
    arguments = (str(export / component.path), capability.image_name(component.name), "feature", feature)
    argv = (sys.executable, "-I", "-c", _COMPUTE, *arguments)
    done = run(Command(argv, cwd=export, env=_environment(path), timeout_s=_TIMEOUT_S))
    if not done.ok:
        why = done.errors.rpartition("\n")[2]
        hint = "see that its version tag is reachable from the commit"
        raise ActorError(Code.UNFIT, f"no version could be computed: {why}", hint=hint, where=component.name)
    return done.text.strip()


def _tagged(git: Git, base: str, name: str) -> bool:
    done = git.attempt("describe", "--tags", "--abbrev=0", "--match", f"{name}/v*", base)
    return done.ok and re.fullmatch(rf"{re.escape(name)}/v[0-9]+\.[0-9]+\.[0-9]+", done.text.strip()) is not None


def _environment(path: str) -> Mapping[str, str]:
    return {
        "PATH": path, "HOME": "/nonexistent", "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_NO_REPLACE_OBJECTS": "1",
    }  # fmt: skip
