"""The forge of the examples, and the environment of an actor that plays one of their scripts on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from foundry_implementation_actor import CapabilityConfig

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


class Forge:
    """What `examples/forge/make` lays out in a folder, for ACME's use."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["sh", EXAMPLES / "forge" / "make", folder], check=True)
        self.instance = folder / "instance"
        self.repository = folder / "forge" / f"{CapabilityConfig.load(self.instance).source_repo}.git"
        self._folder = folder

    def environment(self, script: str = "orders") -> dict[str, str]:
        """The whole environment of an actor that works here; see `acting`."""
        return acting(self._folder, script)


def acting(folder: Path, script: str = "orders") -> dict[str, str]:
    """The whole environment of an actor without images that plays a script, on the forge in a folder."""
    return plain(
        GIT_BASE_URL=f"file://{folder}/forge",
        ACTOR_STATE=str(folder / "state"),
        IMAGES="off",
        SESSION_ENGINE="scripted",
        SESSION_SCRIPT=str(EXAMPLES / "scripts" / f"{script}.yaml"),
    )


def plain(**more: str) -> dict[str, str]:
    """The environment of somebody who types the examples: `python` and our commands are on its PATH."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {"PATH": path, "HOME": os.environ["HOME"], **more}
