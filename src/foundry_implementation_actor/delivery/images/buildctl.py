"""The `buildctl` builder: a client of a BuildKit daemon elsewhere, without daemon or socket here."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.delivery.images.call import OUTPUT_LIMIT, call, not_built, why
from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.delivery.images.shut import check_shut
from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop, run_contained

_CHECK_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Buildctl:
    """Builds by `buildctl build --output type=image,…`, and pushes by the same call with `push=true`.

    `host` is BUILDKIT_HOST; `environment` is the whole one that buildctl gets besides it. Without `network`, what a
    Dockerfile runs reaches none; without `registry_tls`, the daemon may speak plain HTTP to the registry.
    """

    host: str
    environment: Mapping[str, str]
    timeout_s: float
    network: bool
    registry_tls: bool

    name = "buildctl"

    def lacks(self) -> Iterator[ActorError]:
        """See `port.Builder.lacks`: the setting, then the program and a daemon that answers."""
        if not self.host:
            hint = "set it to the BuildKit daemon, or run with IMAGE_BUILDER=none"
            yield ActorError(Code.UNFIT, "BUILDKIT_HOST is not set", hint=hint)
            return
        command = self._command(Path("/"), _CHECK_TIMEOUT_S, "debug", "workers")
        try:
            done = run_contained(command)
        except ActorError as error:  # no such program
            yield error
            return
        if not done.ok:
            said = f"the BuildKit daemon does not answer: {why(done, self.name, _CHECK_TIMEOUT_S)}"
            yield ActorError(Code.UNFIT, said, hint="check BUILDKIT_HOST", where=self.host)

    @contextlib.contextmanager
    def building(self, order: ImageOrder, desk: Path, stop: Stop | None = None) -> Iterator[BuiltThere]:
        """See `port.Builder.building`."""
        if not self.network:
            check_shut(order)
        built = BuiltThere(self, order, desk, stop)
        with not_built(self.network):
            built.digest = built.run(push=False)
        yield built

    def command(self, order: ImageOrder, told: Path, *, push: bool) -> Command:
        """The call that builds an order and writes its digest to `told`."""
        options = {
            "build-arg:SOURCE_DATE_EPOCH": str(order.created),
            **({} if self.network else {"force-network-mode": "none"}),
            **{f"label:{name}": text for name, text in order.labels.items()},
        }
        fields = ["type=image", f"name={order.ref}", f"push={str(push).lower()}", "rewrite-timestamp=true"]
        fields += [] if self.registry_tls else ["registry.insecure=true"]
        return self._command(
            order.export, self.timeout_s, "build", "--progress", "plain", "--frontend", "dockerfile.v0",
            "--local", f"context={order.context.rstrip('/')}", "--local", f"dockerfile={order.dockerfile.rstrip('/')}",
            *(word for name, text in options.items() for word in ("--opt", f"{name}={text}")),
            "--metadata-file", str(told), "--output", ",".join(map(_field, fields)),
        )  # fmt: skip

    def _command(self, cwd: Path, timeout_s: float, *arguments: str) -> Command:
        environment = {**self.environment, "BUILDKIT_HOST": self.host}
        return Command(
            ("buildctl", *arguments), cwd=cwd, env=environment, timeout_s=timeout_s, output_limit=OUTPUT_LIMIT
        )


@dataclass
class BuiltThere:
    """An image in the daemon's cache: asked for once more with `push=true`, it is not built again."""

    builder: Buildctl
    order: ImageOrder
    desk: Path
    stop: Stop | None
    digest: str = ""

    def push(self) -> None:
        """See `port.Built.push`."""
        pushed = self.run(push=True)
        if pushed != self.digest:
            said = f"the daemon built {self.digest} first, and then pushed {pushed}"
            raise ActorError(Code.UNFIT, said, hint="ask again; the daemon's cache was lost", where=self.order.ref)

    def run(self, *, push: bool) -> str:
        """Build it, and push it if asked to; its digest."""
        told = self.desk / "metadata.json"
        said = f"the image could not be {'pushed' if push else 'built'}"
        call(self.builder.name, self.builder.command(self.order, told, push=push), self.stop, said, self.order.ref)
        try:
            return str(json.loads(told.read_bytes())["containerimage.digest"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            hint = "use a BuildKit of version 0.13 or later"
            raise ActorError(Code.UNFIT, "buildctl told no digest", hint=hint, where=self.order.ref) from error


def _field(text: str) -> str:
    """One field of the exporter's comma-separated list, quoted as CSV where it needs to be."""
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\n]', text) else text
