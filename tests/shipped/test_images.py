"""The actor's image and a use of it: linted, and really built, with stand-ins for what must be pulled."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from foundry_implementation_actor import conformance, version
from support.example_forge import EXAMPLES, ROOT, Forge
from support.images import UID, Images
from support.repos import Repo
from support.serving import Serving

DOCKERFILE = ROOT / "docker" / "Dockerfile"
USE = ROOT / "docker" / "use.Dockerfile"
BASES = {
    "PYTHON_IMAGE": "localhost/stand-in",
    "NODE_IMAGE": "localhost/stand-in",
    "BUILDKIT_IMAGE": "localhost/copied",
}
WHEEL = """
import sys
from hatchling.builders.wheel import WheelBuilder
next(WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"]))
"""


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Images]:
    """A store that is gone afterwards; in memory where there is enough of it, since it is many small files."""
    memory = Path("/dev/shm")
    in_memory = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30
    with TemporaryDirectory(dir=memory if in_memory else tmp_path, prefix="images-") as folder:
        yield Images(Path(folder))


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """What `docker build .` sends: the files that `.dockerignore` lets through, and the wheel of this tree."""
    context = tmp_path / "context"
    for name in ("docker/Dockerfile", "tools/package.json", "tools/package-lock.json", "requirements/image.txt"):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, context / name)
    shutil.copyfile(ROOT / ".dockerignore", context / ".dockerignore")
    subprocess.run([sys.executable, "-c", WHEEL, ROOT, context / "dist"], check=True, capture_output=True)
    return context


class Deployed(Serving):
    """`serve` as the image's own command starts it."""

    def __init__(self, argv: list[str]) -> None:
        super().__init__(Path(), {})
        self._argv, self._environment = argv, {"PATH": os.environ["PATH"]}

    def __exit__(self, *exc: object) -> None:
        """The signal goes to the actor itself; bubblewrap, which started it, would not hand it on."""
        [actor] = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        os.kill(int(actor), signal.SIGTERM)
        assert self._process.wait(60) == 0
        self._reader.join(60)


@pytest.mark.parametrize("dockerfile", [DOCKERFILE, USE])
def test_a_dockerfile_passes_hadolint(dockerfile: Path) -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, "--no-color", dockerfile], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_pinned_claude_is_the_one_that_the_tests_drive() -> None:
    assert "COPY tools/package.json tools/package-lock.json" in DOCKERFILE.read_text()
    assert "npm ci --ignore-scripts" in DOCKERFILE.read_text()


def test_a_use_has_four_lines_and_names_the_released_image() -> None:
    lines = [line for line in USE.read_text().splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == ["FROM", "COPY", "COPY", "RUN"]
    assert lines[0].endswith(f"/foundry-implementation-actor:{version()}")


def test_the_image_is_built_and_serves_both_doors_as_a_plain_user_on_a_read_only_root(
    images: Images, context: Path, tmp_path: Path
) -> None:
    said = images.build(context, "docker/Dockerfile", "actor", **BASES, VERSION=version(), REVISION="0" * 40)
    assert "npm ci --ignore-scripts" in said
    assert "--no-install-recommends bubblewrap ca-certificates git" in said
    _is_configured(images.config("actor"))

    use = tmp_path / "use"
    use.mkdir()
    shutil.copyfile(EXAMPLES / "acme" / "actor-agentic-context.yaml", use / "actor-agentic-context.yaml")
    (use / "Dockerfile").write_text(_without_pulling((EXAMPLES / "acme" / "Dockerfile").read_text()))
    assert "the sidecar conforms" in images.build(use, "Dockerfile", "use")
    tree = images.unpack("use")
    assert conformance.check(tree / "actor").ok
    assert {path.name for path in (tree / "usr/local/bin").iterdir()} == {"buildctl", "claude", "knowledge"}
    _answers(images, tree, tmp_path / "served")


def _is_configured(config: Any) -> None:
    assert (config["User"], config["Entrypoint"]) == (f"{UID}:{UID}", ["foundry-implementation-actor"])
    assert config["Cmd"] == ["serve", "/actor"]
    assert config["Volumes"] == {"/var/lib/actor": {}}
    labels = {name.rpartition(".")[2]: value for name, value in config["Labels"].items() if "opencontainers" in name}
    assert (labels["title"], labels["version"]) == ("foundry-implementation-actor", version())
    assert (labels["licenses"], labels["revision"]) == ("MIT", "0" * 40)
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "python", "-c"]


def _without_pulling(dockerfile: str) -> str:
    """The same lines, on the image that was just built and with the stand-in of the knowledge tool."""
    built = re.sub(r"^FROM \S+$", "FROM localhost/actor", dockerfile, flags=re.MULTILINE)
    return re.sub(r"--from=\S+", "--from=localhost/copied", built)


def _answers(images: Images, tree: Path, folder: Path) -> None:
    forge = Forge(folder)
    state = folder / "deployed"
    state.mkdir()
    _give(UID, state, folder / "forge")
    binds = {folder / "forge": "/tmp/forge", EXAMPLES / "scripts": "/tmp/scripts", state: "/var/lib/actor"}
    settings = {"GIT_BASE_URL": "file:///tmp/forge", "HOST": "127.0.0.1", "IMAGES": "off"}
    scripted = {"SESSION_ENGINE": "scripted", "SESSION_SCRIPT": "/tmp/scripts/orders.yaml"}
    program, command = images.config("use")["Entrypoint"], images.config("use")["Cmd"]

    def inside(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        argv = images.inside(tree, binds, {**settings, **more}, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    doctor = inside(*program, "doctor", "/actor", "--json", CLAUDE_CODE_OAUTH_TOKEN="a-token-for-tests")
    findings = json.loads(doctor.stdout)["findings"]
    assert [finding for finding in findings if finding["state"] in {"missing", "wrong"}] == []
    assert doctor.returncode == 0
    assert {"git", "claude", "containment", "sandbox", "ACTOR_STATE", "instance"} <= {
        finding["subject"] for finding in findings
    }

    argv = images.inside(tree, binds, settings | scripted, *program, *command, "--port", "0")
    with Deployed(argv) as deployed:
        port = deployed.recorded("actor-started")[0]["port"]
        healthy = inside(*images.config("use")["Healthcheck"]["Test"][1:], PORT=str(port))
        assert healthy.returncode == 0, healthy.stderr
        task = json.loads((EXAMPLES / "peer" / "task.json").read_text())
        assert deployed.call("assess-task", task).body["feasible"] is True
        answer = deployed.call("implement-task", task)
        assert answer == (200, {"accepted": True, "branch": "impl/TASK-014", "images": []})
    _give(os.getuid(), folder / "forge")
    assert "no-lines" in Repo(forge.repository).read("backend/orders.py", "impl/TASK-014")

    told = inside("sh", "-c", "id -u; touch /actor/x; touch /opt/actor/x; touch /tmp/x && echo writable")
    assert told.stdout.split() == [str(UID), "writable"]
    assert told.stderr.count("Read-only file system") == 2


def _give(user: int, *folders: Path) -> None:
    """Make a user the owner of directories and all below them; git trusts no other's repository."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)


def test_what_is_copied_is_let_through_by_dockerignore() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = {source for line in copied for source in line.split()}
    assert {source for source in sources if not any(name.startswith(source) for name in let_through)} == set()
    assert {name for name in let_through if not any(name.startswith(source) for source in sources)} == set()


def test_a_build_without_exactly_one_wheel_is_refused_before_its_packages_are_installed(
    images: Images, context: Path
) -> None:
    [wheel] = (context / "dist").iterdir()
    another = wheel.with_name("another-1.0-py3-none-any.whl")
    shutil.copyfile(wheel, another)
    two = images.try_build(context, "docker/Dockerfile", "actor", **BASES)
    assert "dist/ must hold exactly one wheel" in two.stderr
    wheel.unlink()
    another.unlink()
    none = images.try_build(context, "docker/Dockerfile", "actor", **BASES)
    assert "dist/" in none.stderr.splitlines()[-1]
    for done in (two, none):
        assert done.returncode != 0
        assert "image.txt" not in done.stdout
