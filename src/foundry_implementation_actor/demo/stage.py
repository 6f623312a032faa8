"""Where the demo plays: one folder with a forge, an instance, what its sessions know, and what is asked.

The parts are real files under `sample/`, to be read as examples.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.actor.task_file import read_task_file
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.system.git import Git, make_git_dir

SIDECAR = "actor-agentic-context.yaml"
MAIN = "main"

_SAMPLE = Path(__file__).with_name("sample")
_REPOSITORY = _SAMPLE / "cart-repository"
_KNOWLEDGE = "/srv/knowledge"  # what the sample's sidecar says
_TIMEOUT_S = 60.0
_SOMEBODY = {
    "GIT_AUTHOR_NAME": "Demo Shop", "GIT_AUTHOR_EMAIL": "demo-shop@example.org",
    "GIT_COMMITTER_NAME": "Demo Shop", "GIT_COMMITTER_EMAIL": "demo-shop@example.org",
}  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """The demo's folder and what lies where in it. `path` is the PATH on which git is found."""

    folder: Path
    path: str

    @property
    def forge(self) -> Path:
        """The forge's repositories, `<owner>/<repo>.git`."""
        return self.folder / "forge"

    @property
    def instance(self) -> Path:
        """The folder with the sidecar."""
        return self.folder / "instance"

    @property
    def script(self) -> Path:
        """What the scripted sessions do."""
        return self.folder / "session.yaml"

    @property
    def acceptance(self) -> str:
        """The peer's check of a branch's files, a Python file."""
        return str(self.folder / "acceptance.py")

    @property
    def config(self) -> CapabilityConfig:
        """The capability, as the sidecar states it."""
        return CapabilityConfig.load(self.instance)

    @property
    def repository(self) -> Path:
        """The capability's bare repository on the forge."""
        return self.forge / f"{self.config.source_repo}.git"

    @property
    def git(self) -> Git:
        """Git in the forge's repository."""
        return Git(self.repository, {"PATH": self.path}, _TIMEOUT_S)

    def task(self, name: str) -> dict[str, object]:
        """The payload of a task file, `assess` or `implement`."""
        return read_task_file(str(self.folder / "tasks" / f"{name}.yaml"))

    def keep_task(self, name: str, payload: Mapping[str, object]) -> None:
        """Write a payload beside the other task files, as JSON."""
        (self.folder / "tasks" / f"{name}.json").write_text(json.dumps(payload, indent=2) + "\n", "utf-8")

    def branches(self) -> list[str]:
        """The branches that the forge has now."""
        return self.git.text("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()

    def files_of(self, branch: str) -> Path:
        """A branch's files, written into a folder of their own below `pushed/`."""
        place = self.folder / "pushed" / branch.replace("/", "-")
        place.mkdir(parents=True)
        apart = {"GIT_INDEX_FILE": str(self.repository / "index.demo")}
        replace(self.git, work_tree=place).output("read-tree", "--reset", "-u", branch, extra=apart)
        (self.repository / "index.demo").unlink()
        return place


def set_up(folder: Path, path: str) -> Stage:
    """Lay out the demo in an empty folder.

    Raises:
        ActorError: UNFIT when git cannot make the repository.
    """
    stage = Stage(folder, path)
    for part in ("instance", "knowledge", "tasks"):
        shutil.copytree(_SAMPLE / part, folder / part)
    for part in ("session.yaml", "acceptance.py"):
        shutil.copyfile(_SAMPLE / part, folder / part)
    _point_at_knowledge(stage.instance / SIDECAR, folder / "knowledge")
    _make_repository(stage)
    return stage


def _point_at_knowledge(sidecar: Path, knowledge: Path) -> None:
    """Put a real folder in the place of the sample's, inside of double quotes."""
    quoted = json.dumps(str(knowledge), ensure_ascii=False)[1:-1]
    sidecar.write_text(sidecar.read_text("utf-8").replace(_KNOWLEDGE, quoted), "utf-8")


def _make_repository(stage: Stage) -> None:
    """The forge's repository with one commit, and the tag from which each image gets its version."""
    stage.repository.parent.mkdir(parents=True)
    make_git_dir(stage.repository, f"ref: refs/heads/{MAIN}", bare=True)
    outside = replace(stage.git, work_tree=_REPOSITORY)
    names = "".join(f"{name}\0" for name in _sample_files())
    outside.output("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=names.encode())
    outside.output("commit", "--quiet", "--message", "The cart, as it is", extra=_SOMEBODY)
    (stage.repository / "index").unlink()
    for component in stage.config.components:
        stage.git.output("tag", f"{stage.config.image_name(component.name)}/v0.1.0", MAIN)


def _sample_files() -> Iterator[Path]:
    """The sample's files, without what an installer has compiled beside them."""
    for path in _REPOSITORY.rglob("*"):
        if path.is_file() and path.parent.name != "__pycache__":
            yield path.relative_to(_REPOSITORY)
