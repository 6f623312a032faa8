"""Every try there is: importing this knows them all."""

from __future__ import annotations

from foundry_implementation_actor.sandbox.inside import files, first, holds, kernel, reach, rights
from foundry_implementation_actor.sandbox.inside.first import FIRST
from foundry_implementation_actor.sandbox.inside.trying import TRIES, Scene, Try

__all__ = ["FIRST", "TRIES", "Scene", "Try", "files", "first", "holds", "kernel", "reach", "rights"]

# Last: the other tries on the neighbour need it alive.
TRIES["kill-a-neighbour"] = TRIES.pop("kill-a-neighbour")
