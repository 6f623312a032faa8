"""Judging warm and cold, and looking at what a warm gate keeps."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from python_house import PythonHouse

from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.gate.trial import Isolated
from foundry_implementation_actor.judges.bodies import body_judges
from foundry_implementation_actor.system.supervise import descendants

_ADDRESS = re.compile("0x[0-9a-f]+")


def judged(
    house: PythonHouse, body: bytes, judge: str, where: Isolated, beside: dict[str, bytes] | None = None
) -> Verdict:
    original = (house.root / house.place.path).read_bytes()
    candidate = Candidate(house.place, body, original, beside or {})
    (one,) = (one for one in body_judges("python") if one.name == judge)
    with where(house.app, [candidate]) as run:
        return one.judge(house.app, candidate, run)


def told(verdict: Verdict) -> str:
    """All of a verdict, without what differs between two runs of one command."""
    return _ADDRESS.sub("0x", repr(verdict))


def differences(house: PythonHouse, bodies: dict[str, bytes], judge: str, warm: Isolated) -> dict[str, tuple[str, str]]:
    """The bodies that are judged otherwise warm than cold, with both verdicts."""
    found = {}
    for name, body in bodies.items():
        both = told(judged(house, body, judge, warm)), told(judged(house, body, judge, isolated))
        if both[0] != both[1]:
            found[name] = both
    return found


def servers() -> dict[str, list[int]]:
    """The processes below this one that a warm gate keeps: those that fork, and ty's server."""
    kept: dict[str, list[int]] = {"forks": [], "ty": []}
    for pid in descendants(os.getpid()):
        words = told_of(pid, "cmdline").split(b"\0")
        if words[1:2] and words[1].endswith(b"/fork_server.py") and _has_socket(pid):
            kept["forks"].append(pid)
        elif words[1:2] == [b"server"]:
            kept["ty"].append(pid)
    return {kind: sorted(pids) for kind, pids in kept.items()}


def told_of(pid: int, name: str) -> bytes:
    """What /proc says of a process; nothing when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _has_socket(pid: int) -> bool:
    """Whether a process can still be asked; one that watches over a single fork cannot."""
    with contextlib.suppress(OSError):
        return any(str(one.readlink()).startswith("socket:") for one in Path(f"/proc/{pid}/fd").iterdir())
    return False
