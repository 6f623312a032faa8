"""Sessions whose only pen is the gate: whether there are any, of which app, and what this host lacks for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foundry_implementation_actor.actor.holding import own_places
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ActorError, Code, SettingsError
from foundry_implementation_actor.judges.boundary import barred
from foundry_implementation_actor.session.pen import MakePen, Pen
from foundry_implementation_actor.system.install import install
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.release import version


def gate_root(settings: Settings, capability: Capability) -> str | None:
    """The directory of the app whose gate is a session's only pen, with `/` at its end; None without such sessions.

    Raises:
        SettingsError: SESSION_WRITES asks for the gate, and nobody says of which app.
    """
    if capability.gate is not None or settings.session_writes != "gate":
        return capability.gate
    roots = capability.writes_only_under
    if len(roots) > 1:
        said = f"SESSION_WRITES=gate, and the sidecar has {len(roots)} components: of which app is the gate?"
        raise SettingsError(said, hint="write `gate: {root: <directory>, writes: gate}` in the sidecar")
    return roots[0]


def make_pen(settings: Settings, capability: Capability) -> MakePen | None:
    """What makes a session's only pen; None when sessions write freely.

    Raises:
        SettingsError: as `gate_root`.
    """
    root = gate_root(settings, capability)
    if root is None:
        return None

    def make(tree: Path, folder: Path, journal: Journal) -> Pen:
        from foundry_implementation_actor.mcp_server.only_pen import OnlyPen, PenRule  # noqa: PLC0415 - optional

        network, hidden = settings.session_hosts.is_open, own_places(settings)
        rule = PenRule(root, partial(barred, capability), settings.path, network, version(), hidden)
        return OnlyPen(rule, tree, folder, journal)

    return make


def gate_lacks(settings: Settings, capability: Capability) -> Iterator[ActorError]:
    """What this host lacks for sessions whose only pen is the gate."""
    if gate_root(settings, capability) is None:
        return
    try:
        # Optional: an actor whose sessions write freely does without the extra.
        from foundry_implementation_actor.gate.isolate import held_refusal  # noqa: PLC0415
        from foundry_implementation_actor.mcp_server import only_pen  # noqa: F401, PLC0415
    except ImportError as error:
        said = f"the gate is to be the only pen, and its extra is not installed ({error.name})"
        yield ActorError(Code.UNFIT, said, hint=install("gate"))
        return
    refusal = held_refusal()
    if refusal and settings.sandbox != "none":
        said = f"the gate would run what sessions hand in with nothing to hold it ({refusal})"
        hint = (
            "install bubblewrap and allow user namespaces, use a kernel with Landlock, or accept it with SANDBOX=none"
        )
        yield ActorError(Code.UNFIT, said, hint=hint)
