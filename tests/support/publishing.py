"""Real buildah, one component of a commit, and what publishes its image: faster than a whole run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from foundry_implementation_actor.delivery.images.buildah import Buildah
from foundry_implementation_actor.delivery.images.port import ImageOrder, Published
from foundry_implementation_actor.delivery.images.publish import Publisher
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.system.files import remove_tree
from foundry_implementation_actor.system.process import Stop
from support.repos import Files, write_files

CREATED = 1_767_323_045
REPOSITORY = "foundry/acme.parts/sup.007.wid/backend"
PROGRAMS = ("buildah", "bwrap", "busybox", "newgidmap", "newuidmap", "runc", "unshare")
SHELL = "FROM scratch AS base\nCOPY rootfs/ /\nENV PATH=/bin\n"
"""What a Dockerfile starts with that runs something; `rootfs/` has one program, which is every program."""

ADD_BUSYBOX = """\
d=backend/rootfs/bin; mkdir -p $d; cp $(command -v busybox) $d/busybox; cd $d
for name in $(busybox --list); do [ $name = busybox ] || ln -s busybox $name; done
"""
"""Lines of shell that put `rootfs/` into the component, for a Dockerfile that starts with SHELL."""


def need_buildah() -> None:
    """Skip the test where buildah or what encloses it is not installed."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; run `make test`, or `sh scripts/setup-images`")


class Bench:
    """A component's folder `context`, as a commit would have it, and what publishes it to a registry.

    Args:
        base: an empty directory.
        host: of the registry.
        dockerfile: the component's; it runs programs when it starts with SHELL.
        docker_config: the folder of a login, or empty.
        tls, network, timeout_s: as the settings of these names.
        environment: what the site passes on.
    """

    def __init__(
        self,
        base: Path,
        host: str,
        dockerfile: str = "FROM scratch\nCOPY . /\n",
        *,
        docker_config: Path | str = "",
        tls: bool = False,
        network: bool = False,
        timeout_s: float = 60.0,
        environment: Mapping[str, str] = {},
    ) -> None:
        need_buildah()
        self.base = base
        self.commit = base / "commit"
        self.context = self.commit / "backend"
        self.host = host
        self.add({"Dockerfile": dockerfile})
        if dockerfile.startswith(SHELL):
            subprocess.run(["sh", "-c", ADD_BUSYBOX], cwd=self.commit, check=True)
        whole = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
        registry = Registry(f"{host}/foundry", str(docker_config), whole, tls)
        self.builder = Buildah(registry, whole, timeout_s, network)
        self.publisher = Publisher(self.builder, registry)
        self._desks = 0

    def add(self, files: Files) -> None:
        """Write files of the component."""
        write_files(self.context, files)

    def order(self, tag: str = "1") -> ImageOrder:
        """The order of its image."""
        return ImageOrder(self.commit, "backend/", "backend/", self.ref(tag), CREATED, {"org.example.a": "b"})

    def ref(self, tag: str = "1") -> str:
        """What its image is called."""
        return f"{self.host}/{REPOSITORY}:{tag}"

    def publish(self, tag: str = "1", *, stop: Stop | None = None) -> Published:
        """Publish its image, and see that whatever came of it can be cleared away."""
        with self.desk() as desk:
            return self.publisher.publish(self.order(tag), desk, stop)

    @contextlib.contextmanager
    def desk(self) -> Iterator[Path]:
        """An empty desk, cleared away as a run's is."""
        self._desks += 1
        desk = self.base / f"desk-{self._desks}"
        desk.mkdir()
        try:
            yield desk
        finally:
            remove_tree(desk)
