"""The `buildah` builder: no daemon and no root needed, for machines without BuildKit.

What a Dockerfile does is a repository's code. buildah would mount any place of the host into it that a link names, as
writable as that asks for. So buildah itself sees nothing of this host but programs, certificates and the commit, is
nobody there who owns anything (`enclosed`), and reads no setting that lies where a Dockerfile could have written it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.delivery.images.call import OUTPUT_LIMIT, call, not_built, why
from foundry_implementation_actor.delivery.images.enclosed import (
    COMMIT,
    DESK,
    INSIDE,
    NEEDED,
    enclosed,
    open_desk,
)
from foundry_implementation_actor.delivery.images.layout import read_layout
from foundry_implementation_actor.delivery.images.login import logins
from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.delivery.images.shut import check_shut
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.memory import in_memory
from foundry_implementation_actor.system.own_users import remove_theirs_too
from foundry_implementation_actor.system.process import Stop, run_contained

_RUNTIMES = ("runc", "crun")
# Debian has it in /usr/sbin, which is not on the PATH of every user.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_LONGEST_DIGEST = 200
_CHECK_TIMEOUT_S = 20.0
_BUILT = "localhost/built"
_PACKED = "packed"
_ELSE = "or set BUILDKIT_HOST, or run with IMAGE_BUILDER=none"
_REGISTRIES = Path("/etc/containers/registries.conf")
_SEARCHED = "unqualified-search-registries"
_PLAIN = '\n[[registry]]\nlocation = "{host}"\ninsecure = true\n'


@dataclass(frozen=True)
class Buildah:
    """Builds in a store of its own that is gone after the push.

    `registry` is where images go, and bases may come from; `environment` is the whole one that buildah gets besides its
    own. Without `network`, what a Dockerfile runs reaches none.
    """

    registry: Registry
    environment: Mapping[str, str]
    timeout_s: float
    network: bool

    name = "buildah"

    def lacks(self) -> Iterator[ActorError]:
        """See `port.Builder.lacks`: the programs, and what runs a Dockerfile's lines."""
        wanted = {"buildah": "buildah", **NEEDED}
        missing = [program for program in wanted if self._which(program) is None]
        for program in missing:
            yield ActorError(Code.UNFIT, f"the program {program!r} was not found", hint=_get(wanted[program]))
        if not missing:
            yield from self._tried()
        if self._runtime() is None:
            yield ActorError(Code.UNFIT, "neither runc nor crun was found", hint=_get("runc"))

    def _tried(self) -> Iterator[ActorError]:
        """What is said when buildah cannot be enclosed on this host."""
        with tempfile.TemporaryDirectory() as folder:
            open_desk(Path(folder))
            command = self._enclosed(("buildah", "--version"), Path(folder), Path(folder), {})
            done = run_contained(replace(command, timeout_s=_CHECK_TIMEOUT_S))
        if not done.ok:
            said = f"buildah cannot be enclosed here: {why(done, self.name, _CHECK_TIMEOUT_S)}"
            hint = f"allow user namespaces here, and a /proc without covered places, {_ELSE}"
            yield ActorError(Code.UNFIT, said, hint=hint)

    @contextlib.contextmanager
    def building(self, order: ImageOrder, desk: Path, stop: Stop | None = None) -> Iterator[BuiltHere]:
        """See `port.Builder.building`."""
        if not self.network:
            check_shut(order)
        open_desk(desk)
        built = BuiltHere(self, order, desk, stop)
        try:
            built.build(*self._build(order))
            built.pack()
            yield built
        finally:
            remove_theirs_too(desk / INSIDE)

    @contextlib.contextmanager
    def command(self, commit: Path, desk: Path, *words: str) -> Iterator[Command]:
        """One verb of buildah on the store in `desk`, as long as the context is open."""
        store = ("--root", f"{DESK}/store", "--runroot", f"{DESK}/run", "--storage-driver", "vfs")
        with contextlib.ExitStack() as held:
            told = {name: held.enter_context(in_memory(content)) for name, content in self._settings()}
            named = {name: f"/proc/self/fd/{descriptor}" for name, descriptor in told.items()}
            command = self._enclosed(("buildah", *store, *words), commit, desk, named)
            yield replace(command, pass_fds=tuple(told.values()))

    def _settings(self) -> Iterator[tuple[str, bytes]]:
        """What buildah reads from files, by the variable that names each: in memory, where a Dockerfile has no hand."""
        yield "REGISTRY_AUTH_FILE", logins(self.registry.docker_config, self.registry.host, self.environment)
        yield "CONTAINERS_REGISTRIES_CONF", self._registries().encode()

    def _registries(self) -> str:
        """This host's settings of registries, in which a short name is one of Docker's hub as it is to BuildKit."""
        given = _REGISTRIES.read_text() if _REGISTRIES.is_file() else ""
        searched = "" if re.search(rf"^\s*{_SEARCHED}\b", given, re.MULTILINE) else f'{_SEARCHED} = ["docker.io"]\n'
        return f"{searched}{given}{'' if self.registry.tls else _PLAIN.format(host=self.registry.host)}"

    def _enclosed(self, argv: Sequence[str], commit: Path, desk: Path, more: Mapping[str, str]) -> Command:
        environment = {**self._environment, **more}
        whole = enclosed(argv, commit, desk, environment)
        return Command(whole, Path("/"), environment, self.timeout_s, output_limit=OUTPUT_LIMIT)

    @property
    def _environment(self) -> dict[str, str]:
        return {**self.environment, "PATH": self._path, "HOME": "/nonexistent", "TMPDIR": DESK}

    def _build(self, order: ImageOrder) -> Iterator[str]:
        yield "bud"
        yield from ("--isolation", "oci", "--runtime", self._runtime() or _RUNTIMES[0])
        yield from ("--network", "host" if self.network else "none", "--http-proxy=false")
        yield from ("--retry", "1", "--retry-delay", "1s")
        yield from ("--format", "oci", "--layers=false", "--identity-label=false", "--timestamp", str(order.created))
        yield from ("--build-arg", f"SOURCE_DATE_EPOCH={order.created}")
        for name, text in order.labels.items():
            yield from ("--label", f"{name}={text}")
        yield from ("--file", f"{COMMIT}/{order.dockerfile}/Dockerfile", "--tag", _BUILT)
        yield f"{COMMIT}/{order.context}"

    def _runtime(self) -> str | None:
        return next(filter(None, map(self._which, _RUNTIMES)), None)

    def _which(self, program: str) -> str | None:
        return shutil.which(program, path=self._path)

    @property
    def _path(self) -> str:
        return f"{self.environment['PATH']}:{_SBIN}"


@dataclass
class BuiltHere:
    """An image in the store of its own that lies in `desk`."""

    builder: Buildah
    order: ImageOrder
    desk: Path
    stop: Stop | None
    digest: str = ""

    def build(self, *words: str) -> None:
        """Carry out the Dockerfile."""
        with not_built(self.builder.network):
            self.call("the image could not be built", *words)

    def pack(self) -> None:
        """Find what the image is named by once it is packed as it will be sent."""
        with in_memory(b"") as told:
            words = ("--digestfile", f"/proc/self/fd/{told}", _BUILT, f"oci:{DESK}/{_PACKED}")
            self.call("the image could not be packed", "push", "--quiet", *words, pass_fds=(told,))
            self.digest = os.pread(told, _LONGEST_DIGEST, 0).decode().strip()

    def push(self) -> None:
        """See `port.Built.push`. The actor sends what was packed by itself: no builder that ran a Dockerfile does."""
        until = time.monotonic() + self.builder.timeout_s

        def halt() -> None:
            if self.stop is not None and self.stop.is_set():
                raise ActorError(Code.INTERRUPTED, "the actor is stopping")
            if time.monotonic() > until:
                said = f"it was not sent within {self.builder.timeout_s:g} s"
                raise ActorError(Code.UNFIT, said, hint="raise BUILD_TIMEOUT_S if it needs longer")

        try:
            packed = read_layout(self.desk / INSIDE / _PACKED, self.digest)
            self.builder.registry.send(self.order.ref, packed, halt)
        except ActorError as error:
            said = f"the image could not be pushed: {error.seen}"
            raise ActorError(error.code, said, hint=error.hint, where=self.order.ref) from error

    def call(self, said: str, *words: str, pass_fds: tuple[int, ...] = ()) -> None:
        """Run one verb of buildah; `said` is what could not be done when it fails."""
        with self.builder.command(self.order.export, self.desk, *words) as command:
            whole = replace(command, pass_fds=(*command.pass_fds, *pass_fds))
            call(self.builder.name, whole, self.stop, said, self.order.ref)


def _get(package: str) -> str:
    return f"apt-get install {package}, {_ELSE}"
