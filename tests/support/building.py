"""A stand-in for `buildctl`, and a place whose actors build with it for a real registry on loopback."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.place import Place
from support.repos import CAPABILITY_FILES, SIDECAR, Files

HOST = "tcp://builder.invalid:1234"
_STAND_IN = Path(__file__).parent / "stand_in_buildctl.py"


@dataclass
class Build:
    """One call of buildctl."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    files: list[str]
    price: str

    @property
    def built(self) -> bool:
        """Whether it was to build, without pushing yet."""
        return self.argv[0] == "build" and ",push=false," in self.argv[-1]


class Builder:
    """A stand-in for `buildctl` on PATH, and a real registry on loopback that its images go to."""

    def __init__(self, base: Path, host: str) -> None:
        self.registry = f"{host}/foundry"
        self.desk = base / "desk"
        self.bin = base / "bin"
        self.desk.mkdir(parents=True)
        self.bin.mkdir()
        program = self.bin / "buildctl"
        program.write_text(f"#!{sys.executable} -I\n{_STAND_IN.read_text()}")
        program.chmod(0o755)

    def refuse(self, *components: str, to: str = "build") -> None:
        """Let the images of these components, and no others, not be built, or not be pushed."""
        (self.desk / f"refuse-{to}").write_text(" ".join(components))

    def salt(self, text: str) -> None:
        """Let every image from now on be another than before."""
        (self.desk / "salt").write_text(text)

    @property
    def builds(self) -> list[Build]:
        """Every call that built, by its image."""
        calls = [Build(**json.loads(call.read_text())) for call in self.desk.glob("call.*.json")]
        return sorted((call for call in calls if call.built), key=lambda build: build.argv)


def publishing(
    base: Path,
    builder: Builder,
    *,
    files: Files = CAPABILITY_FILES,
    sidecar: str = SIDECAR,
    more: Mapping[str, str] = {},
) -> Place:
    """A place whose actors publish what this builder builds; `more` are further settings."""
    settings = {"IMAGES": "on", "IMAGE_REGISTRY": builder.registry, "BUILDKIT_HOST": HOST, "REGISTRY_TLS": "off"}
    settings |= {"DOCKER_CONFIG": "/docker", "PATH": f"{builder.bin}:{os.environ['PATH']}", **more}
    return Place(base / "place", files=files, sidecar=sidecar, local=True, settings=settings)
