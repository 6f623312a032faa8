"""What the gate's demo tells: a class is made, its test lands, a fake is refused by it, the real body lands.

Everything is real: the gate, the judges, the language's own tools. The bodies lie under `sample/gate/`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from foundry_implementation_actor.domain.unit import Target
from foundry_implementation_actor.gate.answer import Answer, answer, made, read
from foundry_implementation_actor.gate.ask import Ask, Whole
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.system.install import install

_BODIES = Path(__file__).with_name("sample") / "gate"
_AUTOLOAD = """\
<?php
spl_autoload_register(static function (string $class): void {
    $file = dirname(__DIR__) . '/src/' . strtr(substr($class, 4), '\\\\', '/') . '.php';
    if (str_starts_with($class, 'App\\\\') && is_file($file)) {
        require $file;
    }
});
"""


@dataclass(frozen=True)
class Play:
    """The demo in one language: the files an app starts with, and its names.

    `needs` are programs; `modules` are Python's, each with the command that installs it.
    """

    language: str
    needs: tuple[str, ...]
    modules: dict[str, str]
    files: dict[str, str]
    plugin: str
    test: str


_PYTHON_APP = {"pyproject.toml": '[project]\nname = "shop"\nversion = "0"\n'}
_PHP_APP = {"composer.json": "{}\n", "vendor/autoload.php": _AUTOLOAD}
PLAYS = (
    Play("python", (), {"pytest": install("gate")}, _PYTHON_APP, "shop", "TestCart"),
    Play("php", ("php", "phpunit"), {"tree_sitter_php": install("gate")}, _PHP_APP, "Shop", "CartTest"),
)
CLASS = "Cart"


@dataclass(frozen=True)
class Scene:
    """One step of a play: what was done, what the gate answered, and whether that is as told."""

    language: str
    title: str
    answer: Answer
    as_told: bool
    seconds: float


def absent(play: Play, path: str) -> list[str]:
    """What a play needs and this host has not: programs by name, modules with what installs them."""
    programs = [program for program in play.needs if shutil.which(program, path=path) is None]
    lacking = [name for name in play.modules if find_spec(name) is None]
    return [*programs, *(f"{name} ({play.modules[name]})" for name in lacking)]


def tell(play: Play, folder: Path, path: str, show: Callable[[Scene], None]) -> list[Scene]:
    """Play in a new folder; `show` gets each scene as it ends. A scene that is not as told is the last."""
    _lay(play, folder)
    gate = Gate(House.open(folder, search_path=path))
    scenes = []
    for title, act, landed in _acts(play, gate):
        started = time.monotonic()
        given = act()
        scene = Scene(play.language, title, given, given["ok"] is landed, time.monotonic() - started)
        show(scene)
        scenes.append(scene)
        if not scene.as_told:
            break
    return scenes


def _acts(play: Play, gate: Gate) -> list[tuple[str, Callable[[], Answer], bool]]:
    plugin, target, test = play.plugin, Target(play.plugin, CLASS), Target(play.plugin, play.test)

    def land(what: Target, body: str) -> Callable[[], Answer]:
        content = (_BODIES / play.language / f"{body}.txt").read_bytes()
        return lambda: answer(gate.implement(Ask(what, Whole(content))))

    return [
        ("make a plugin", lambda: made(gate.make("plugin", plugin)), True),
        ("make a class in it", lambda: made(gate.make("service", plugin, CLASS)), True),
        ("make its test", lambda: made(gate.make("test", plugin, CLASS)), True),
        ("the test lands: it says what the class must do", land(test, "test"), True),
        ("a body that only looks like the work is refused by that test", land(target, "fake"), False),
        ("the refusal left the scaffold as it was", lambda: read(gate.read(target)), True),
        ("the body that does the work lands", land(target, "honest"), True),
    ]


def _lay(play: Play, folder: Path) -> None:
    for name, text in play.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
