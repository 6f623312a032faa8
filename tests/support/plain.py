"""Running a piece of Python as somebody who is not root, and the view that tests of sandboxes start from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.sandbox.port import Sandbox, View
from foundry_implementation_actor.system.process import run_contained

NOBODY = 65_534
SOURCES = Path(__file__).parents[2] / "src"


@cache
def plain_python() -> str:
    """An interpreter that any user of this host may start; empty when there is none that is new enough."""
    candidates = (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin"))
    for one in filter(None, candidates):
        if _as_nobody(one, "import sys; assert sys.version_info >= (3, 11)").returncode == 0:
            return one
    return ""


def run_as_plain(text: str, *words: str) -> str:
    """What a piece of Python prints that runs as `nobody`; it must end well."""
    completed = _as_nobody(plain_python(), text, *words)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def _as_nobody(python: str, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", "PYTHONPATH": str(SOURCES), "LANG": "C.UTF-8"}
    try:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]  # keywords by their values
            (python, "-B", "-c", text, *words), cwd="/", env=environment, text=True, capture_output=True,
            check=False, timeout=120, **other,
        )  # fmt: skip
    except PermissionError as error:
        return subprocess.CompletedProcess((python,), 126, "", str(error))


class Scene:
    """A tree with one folder that may be changed, a HOME, a TMP, and a state that is nobody's business."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tree, self.state = base / "state" / "tree", base / "state"
        self.root, self.home, self.temporary = self.tree / "backend", base / "state" / "home", base / "state" / "tmp"
        for folder in (self.root, self.home, self.temporary):
            folder.mkdir(parents=True)
        (self.tree / "outside.txt").write_text("kept\n")
        (self.root / "inside.txt").write_text("old\n")
        (self.state / "secret").write_text("a secret\n")

    def view(self, **more: object) -> View:
        """The view of a session in that tree."""
        plain = View((self.root,), self.home, self.temporary, hidden=(self.state,), shown=(self.tree,))
        return View(**{**vars(plain), **more})

    def command(self, *argv: str, timeout_s: float = 60.0) -> Command:
        """A command in the tree, with the environment that such a session has."""
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        environment = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self.temporary), "LANG": "C.UTF-8"}
        return Command(argv, self.tree, environment, timeout_s)

    def run(self, sandbox: Sandbox, *argv: str, **more: object) -> Completed:
        """What came of a program in a sandbox."""
        with sandbox.confine(self.command(*argv), self.view(**more)) as confined:
            return run_contained(confined)

    def shell(self, sandbox: Sandbox, line: str, **more: object) -> Completed:
        """What came of a line of shell in a sandbox."""
        return self.run(sandbox, "/bin/sh", "-c", line, **more)
