"""Which sandbox an actor uses on this host."""

from __future__ import annotations

from functools import cache

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox import bubblewrap, landlock
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.sandbox.self_check import refusal

AUTO = "auto"
WORDS = (AUTO, "bubblewrap", "landlock", "none")
"""What the setting may say."""

_STRONGEST_FIRST = ("bubblewrap", "landlock")


def choose(word: str) -> Sandbox:
    """The sandbox that a word names, seen to hold on this host now; `auto` is the strongest that does, never `none`.

    Each is tried for real, once in a process. One that leaves the network open is taken by its name only.

    Raises:
        ActorError: BAD_REQUEST for another word, UNFIT when it does not hold here, with the reason for each.
    """
    if word == "none":
        return NoSandbox()
    if word not in WORDS:
        raise ActorError(Code.BAD_REQUEST, f"there is no sandbox {word!r}", hint=f"say one of {', '.join(WORDS)}")
    reasons = []
    for name in _STRONGEST_FIRST if word == AUTO else (word,):
        why = why_not(name) or (_too_wide(_made(name)) if word == AUTO else "")
        if not why:
            return _made(name)
        reasons.append(f"{name}: {why}")
    raise ActorError(
        Code.UNFIT, f"no sandbox holds on this host ({'; '.join(reasons)})",
        hint="install bubblewrap where namespaces are allowed, or use a kernel with Landlock; "
        "SANDBOX=none runs without, and holds nothing",
    )  # fmt: skip


@cache
def why_not(name: str) -> str:
    """Why the sandbox of this name cannot be used here; empty when it can. Tried once in a process."""
    missing = bubblewrap.missing() if name == "bubblewrap" else landlock.missing()
    return missing or refusal(_made(name))


def _too_wide(sandbox: Sandbox) -> str:
    """Why `auto` passes over a sandbox that holds what it claims to: an operator is to say that this is enough."""
    gap = landlock.NETWORK_OPEN
    return f"{gap.what}; SANDBOX={sandbox.name} accepts that" if gap in sandbox.gaps else ""


def _made(name: str) -> Sandbox:
    return bubblewrap.Bubblewrap() if name == "bubblewrap" else landlock.Landlock()
