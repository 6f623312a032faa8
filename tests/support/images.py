"""Images that are really built, by buildah and without any registry.

The bases that `docker/Dockerfile` names cannot be pulled in a test. In their place stands an image that holds almost
nothing: while a line of a Dockerfile runs, this host's `/usr` is mounted over it, with its git, bubblewrap and Python.
Stand-ins are also `apt-get`, `npm` with the `claude` that it fetches, and what is copied from images elsewhere. pip is
the real one: it installs the wheels that `scripts/setup-images` fetched, each checked against its hash in the lock.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / ".venv" / "wheels"
UID = 10001

Done = subprocess.CompletedProcess[str]

# What of this host the stand-in borrows, each at its own path. Above it are the stand-in's own directories, which
# every user may pass, as is not so on a host where the interpreter lies below somebody's home.
_HOST = ("/usr", sys.base_prefix)
_TIMEOUT_S = 120.0
_NPM = """\
echo "npm $*" >&2
place=node_modules/@anthropic-ai/claude-code-linux-$(node -p process.arch)
mkdir -p "$place"
printf '#!/bin/sh\\necho "2.1.197 (Claude Code)"\\n' >"$place/claude"
"""
_STAND_INS = {"apt-get": 'echo "apt-get $*" >&2', "npm": _NPM, "node": "echo x64"}
_BASE = """\
FROM scratch
COPY rootfs/ /
ENV PATH=/opt/stand-in/bin:/usr/bin:/bin:/usr/sbin:/sbin PIP_NO_INDEX=1 PIP_NO_COMPILE=1 PIP_FIND_LINKS=/wheels
"""
_COPIED = "FROM localhost/stand-in\nCOPY buildctl /usr/bin/\nCOPY knowledge /usr/local/bin/\n"


class Images:
    """A store of images in a directory, with the stand-ins `localhost/stand-in` and `localhost/copied` in it.

    Args:
        folder: an empty directory.
    """

    def __init__(self, folder: Path) -> None:
        if not shutil.which("buildah") or not (WHEELS / ".fetched").is_file():
            pytest.skip("no buildah, or no wheels for an image; run `make test`, or `sh scripts/setup-images`")
        if os.geteuid() != 0:
            pytest.skip("buildah works as root here; run the tests as root")
        self._folder = folder
        _write_rootfs(folder / "base" / "rootfs")
        (folder / "base" / "Dockerfile").write_text(_BASE)
        self.build(folder / "base", "Dockerfile", "stand-in")
        (folder / "base" / "Copied").write_text(_COPIED)
        for name in ("buildctl", "knowledge"):
            _write_program(folder / "base" / name, f'echo "{name} $*"')
        self.build(folder / "base", "Copied", "copied")

    def build(self, context: Path, dockerfile: str, name: str, **arguments: str) -> str:
        """Build an image and call it `localhost/<name>`; what was said on the way.

        Raises:
            AssertionError: the build failed.
        """
        done = self.try_build(context, dockerfile, name, **arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def try_build(self, context: Path, dockerfile: str, name: str, **arguments: str) -> Done:
        """As `build`, however it ends."""
        given = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        return self._buildah(
            "bud", "--isolation", "chroot", "--format", "docker", "--layers=false", "--pull-never",
            *(word for place in _HOST for word in ("--volume", f"{place}:{place}:ro")),
            "--volume", f"{WHEELS}:/wheels:ro",
            *given, "--file", str(context / dockerfile), "--tag", f"localhost/{name}", str(context),
        )  # fmt: skip

    def config(self, name: str) -> Any:
        """The configuration of an image, as a container runtime reads it."""
        return json.loads(self._buildah("inspect", "--type", "image", f"localhost/{name}").stdout)["Docker"]["config"]

    def unpack(self, name: str) -> Path:
        """The file tree of an image; a directory that stays as long as the store."""
        container = self._buildah("from", "--pull-never", f"localhost/{name}").stdout.strip()
        return Path(self._buildah("mount", container).stdout.strip())

    def inside(self, tree: Path, binds: Mapping[Path, str], environment: Mapping[str, str], *words: str) -> list[str]:
        """The argv that runs a program in an unpacked tree: process 1 of uid 10001, the root read-only, /tmp writable.

        Args:
            tree: the root.
            binds: directories of this host, and where below /tmp or on the image's volume they are.
            environment: all of it, besides what the image sets.
            words: the program and its arguments.
        """
        given = {**dict(entry.split("=", 1) for entry in self.config("actor")["Env"]), **environment}
        return [
            "bwrap", "--ro-bind", str(tree), "/", "--dev", "/dev", "--proc", "/proc",
            "--perms", "1777", "--tmpfs", "/tmp",
            "--unshare-pid", "--as-pid-1", "--die-with-parent", "--chdir", "/actor", "--clearenv",
            *(word for place in _HOST for word in ("--ro-bind", place, place)),
            "--ro-bind", str(tree / "usr/local"), "/usr/local",
            *(word for here, there in binds.items() for word in ("--bind", str(here), there)),
            *(word for pair in given.items() for word in ("--setenv", *pair)),
            "--", "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--", *words,
        ]  # fmt: skip

    def _buildah(self, *words: str) -> Done:
        store = ["--root", str(self._folder / "store"), "--runroot", str(self._folder / "run")]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "TMPDIR": str(self._folder)}
        return subprocess.run(
            ["buildah", *store, "--storage-driver", "vfs", *words],
            env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
        )  # fmt: skip


def _write_rootfs(root: Path) -> None:
    made = ("etc", "tmp", "proc", "dev", "sys", "var/lib", "run", "wheels", "usr/local/bin", "opt/stand-in/bin")
    for name in (*made, sys.base_prefix.lstrip("/")):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "opt/stand-in/bin/python").symlink_to(Path(sys.base_prefix) / "bin/python3")
    for name, lines in _STAND_INS.items():
        _write_program(root / "opt/stand-in/bin" / name, lines)


def _write_program(path: Path, lines: str) -> None:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
