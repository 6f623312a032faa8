"""How an app is laid out and judged (CONTRACT 8): what its `gate.yaml` may say, and what holds without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from foundry_implementation_actor.gate.tree import Tree

FILE = "gate.yaml"
MAX_BYTES = 256 * 1024

PYTHON = "python"
PHP = "php"
LANGUAGES = (PYTHON, PHP)


@dataclass(frozen=True)
class Settings:
    r"""How an app is laid out and judged; the defaults are those of a language's house.

    Args:
        language: `python` or `php`.
        source: a plugin's source folder below the root, with `{plugin}`; without it, the one folder
            is the one plugin, called as its last part.
        tests: a plugin's test folder; without `{plugin}` all plugins share it.
        plugins: plugins that lie elsewhere, each with its own two folders (or one module's file).
        imports: the folders that modules are imported from (Python).
        namespaces: the folder of each namespace prefix (PHP); what is not in it is as in
            `composer.json`, and otherwise `App` is `src` and `App\Tests` is `tests`.
        interpreter: argv prefix of the app's interpreter; empty: found.
        analyser: argv of the app's own analyser; empty: found.
        runner: argv of the test runner, its fixed arguments too; empty: found.
        construct: argv that builds a class as the app does, given its full name where `{class}`
            stands, else as the last word; empty: construction is not judged.
        environment: what the app's code needs in its environment when it is judged.
        test_names: file names of a class's own test, in order, with `{class}` (snake case in
            Python) and `{module}`.
        own_tests: the own test of a module, or of one class of it: `module` or `module.Class` to a
            path below the root.
        probe_timeout_s: seconds for the analyser, the probe and the construction, each.
        test_timeout_s: seconds for the class's own test.
        network: whether tests may use the network.
    """

    language: str
    source: str
    tests: str
    plugins: Mapping[str, Tree] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    interpreter: tuple[str, ...] = ()
    analyser: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    construct: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    test_names: tuple[str, ...] = ()
    own_tests: Mapping[str, str] = field(default_factory=dict)
    probe_timeout_s: float = 20.0
    test_timeout_s: float = 60.0
    network: bool = False


HOUSES = {
    PYTHON: Settings(
        language=PYTHON,
        source="src/plugins/{plugin}",
        tests="tests/plugins/{plugin}",
        imports=("src",),
        test_names=("test_{class}.py", "test_{module}.py"),
    ),
    PHP: Settings(
        language=PHP,
        source="src/Plugins/{plugin}",
        tests="tests/Plugins/{plugin}",
        test_names=("{class}Test.php",),
    ),
}

KEYS = tuple(key.name for key in fields(Settings))
