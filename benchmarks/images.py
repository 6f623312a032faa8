"""What publishing an image costs beside the bare programs: same context, same registry, round by round.

    python benchmarks/images.py [--rounds N] [--json]

    bare       `buildah bud` and `buildah push`, with a store of its own that is deleted after it, as root of this host
    published  the same image by the actor: enclosed, built, packed for its digest, looked for, pushed, read back
    again      the same once more, when the registry has it: built, packed, looked for
    ratio      published by bare

As root, with buildah, bubblewrap, runc, uidmap, busybox-static and docker-registry (`scripts/setup-images`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foundry_implementation_actor.delivery.images.buildah import Buildah
from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.delivery.images.publish import Publisher
from foundry_implementation_actor.delivery.images.registry import Registry

DOCKERFILE = 'FROM scratch\nCOPY root/ /\nRUN ["/bin/busybox", "touch", "/made"]\nCOPY files/ /files/\n'
CREATED = 1_700_000_000
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": "/nonexistent"}


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """A registry on loopback; its host and port."""
    folder.mkdir()
    config = folder / "config.yml"
    config.write_text(
        f'version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/images}}}}\nhttp: {{addr: "127.0.0.1:0"}}\n'
    )
    said = folder / "said"
    with said.open("wb") as errors:
        process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=errors, stderr=errors)
    try:
        while not (found := re.search(r"listening on ([\d.:]+)", said.read_text())):
            time.sleep(0.01)
        yield found[1].rstrip(".")
    finally:
        process.terminate()
        process.wait()


def write_context(export: Path, megabytes: int) -> None:
    """A component with a static program to run and some files that do not pack well."""
    (export / "c" / "root" / "bin").mkdir(parents=True)
    (export / "c" / "files").mkdir()
    shutil.copy("/bin/busybox", export / "c" / "root" / "bin" / "busybox")
    for number in range(megabytes):
        (export / "c" / "files" / f"{number}.bin").write_bytes(os.urandom(1024 * 1024))
    (export / "c" / "Dockerfile").write_text(DOCKERFILE)


def bare(export: Path, desk: Path, ref: str) -> None:
    """What a script would do."""
    buildah = ["buildah", "--root", f"{desk}/store", "--runroot", f"{desk}/run", "--storage-driver", "vfs"]
    environment = {**ENVIRONMENT, "HOME": str(desk), "TMPDIR": str(desk)}
    build = ["bud", "--isolation", "oci", "--runtime", "runc", "--network", "none", "--timestamp", str(CREATED)]
    for words in ([*build, "--tag", ref, str(export / "c")], ["push", "--tls-verify=false", ref]):
        subprocess.run([*buildah, *words], env=environment, check=True, capture_output=True)
    shutil.rmtree(desk)


def measure(rounds: int) -> dict[str, float]:
    """The median of each in milliseconds, and the ratio."""
    times: dict[str, list[float]] = {"bare": [], "published": [], "again": []}
    with tempfile.TemporaryDirectory() as name, registry(Path(name) / "registry") as host:
        base = Path(name)
        write_context(base / "export", megabytes=8)
        there = Registry(f"{host}/bench", "", ENVIRONMENT, tls=False)
        publisher = Publisher(Buildah(there, ENVIRONMENT, 300, network=False), there)
        for number in range(rounds):

            def publish(ref: str = f"{host}/bench/actor:{number}") -> None:
                desk = Path(tempfile.mkdtemp(dir=base))
                publisher.publish(ImageOrder(base / "export", "c/", "c", ref, CREATED), desk)
                shutil.rmtree(desk)

            times["bare"].append(timed(lambda: bare(base / "export", base / "bare", f"{host}/bench/bare:{number}")))  # noqa: B023 - called at once
            times["published"].append(timed(publish))
            times["again"].append(timed(publish))
    found = {what: round(statistics.median(taken), 1) for what, taken in times.items()}
    return {**found, "ratio": round(found["published"] / found["bare"], 2)}


def timed(do: Callable[[], None]) -> float:
    """How long it takes, in milliseconds."""
    started = time.perf_counter()
    do()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.rounds)
    print(json.dumps(found) if asked.json else "\n".join(f"{what:10} {value:8}" for what, value in found.items()))


if __name__ == "__main__":
    main()
