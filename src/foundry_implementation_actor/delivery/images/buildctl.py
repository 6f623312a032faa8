"""The `buildctl` builder: a client of a BuildKit daemon elsewhere, without daemon or socket here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop, run_contained

_REGISTRY = re.compile(r"[a-z0-9][a-z0-9.-]*(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_CHECK_TIMEOUT_S = 20.0
OUTPUT_LIMIT = 16 * 1024 * 1024
"""What one call of buildctl may print, in bytes."""


@dataclass(frozen=True)
class Buildctl:
    """Publishes through `buildctl build --output type=image,…,push=true`.

    `host` is BUILDKIT_HOST; `environment` is the whole one that buildctl gets besides it.
    """

    registry: str
    host: str
    environment: Mapping[str, str]
    timeout_s: float = 1800.0

    def check(self) -> None:
        """See `port.Builder.check`."""
        for missing in self.lacks():
            raise missing

    def lacks(self) -> Iterator[ActorError]:
        """See `port.Builder.lacks`: both settings, then the program and a daemon that answers."""
        is_registry = _REGISTRY.fullmatch(self.registry)
        if not is_registry:
            said = f"IMAGE_REGISTRY={self.registry!r} is no registry" if self.registry else "IMAGE_REGISTRY is not set"
            yield ActorError(Code.UNFIT, said, hint="set it to host[:port][/path], or run with images off")
        if not self.host:
            hint = "set it to the BuildKit daemon, or run with images off"
            yield ActorError(Code.UNFIT, "BUILDKIT_HOST is not set", hint=hint)
        if is_registry and self.host:
            yield from self._silent()

    def _silent(self) -> Iterator[ActorError]:
        try:
            done = run_contained(self._command(Path("/"), _CHECK_TIMEOUT_S, "debug", "workers"))
        except ActorError as error:  # no such program
            yield error
            return
        if not done.ok:
            said = f"the BuildKit daemon does not answer: {_why(done, _CHECK_TIMEOUT_S)}"
            yield ActorError(Code.UNFIT, said, hint="check BUILDKIT_HOST", where=self.host)

    def publish(self, order: ImageOrder, stop: Stop | None = None) -> None:
        """See `port.Builder.publish`."""
        order.check()
        command = self._command(
            order.export, self.timeout_s, "build", "--progress", "plain", "--frontend", "dockerfile.v0",
            "--local", f"context={order.context.rstrip('/')}", "--local", f"dockerfile={order.dockerfile.rstrip('/')}",
            "--output", f"type=image,{_field(f'name={order.ref}')},push=true",
        )  # fmt: skip
        done = run_contained(command, stop)
        if not done.ok:
            code = Code.INTERRUPTED if done.ended is Ended.STOPPED else Code.UNFIT
            said = f"the image could not be built and pushed: {_why(done, self.timeout_s)}"
            raise ActorError(code, said, where=order.ref)

    def _command(self, cwd: Path, timeout_s: float, *arguments: str) -> Command:
        environment = {**self.environment, "BUILDKIT_HOST": self.host}
        return Command(
            ("buildctl", *arguments), cwd=cwd, env=environment, timeout_s=timeout_s, output_limit=OUTPUT_LIMIT
        )


def _field(text: str) -> str:
    """One field of the exporter's comma-separated list, quoted as CSV where it needs to be."""
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\n]', text) else text


def _why(done: Completed, timeout_s: float) -> str:
    if done.ended is Ended.TIMEOUT:
        return f"buildctl did not end within {timeout_s:g} s"
    if done.ended is Ended.STOPPED:
        return "the actor is stopping"
    if done.ended is Ended.OUTPUT:
        return f"buildctl printed more than {OUTPUT_LIMIT:,} bytes"
    return " / ".join(done.errors.splitlines()[-6:]) or f"exit {done.code}"
