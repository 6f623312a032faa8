"""`gate.yaml` at an app's root: how an app that is laid out in its own way is judged (CONTRACT 8).

Every key is optional; what a key means and what it is without the file stands in `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from foundry_implementation_actor.domain.document import MISSING, Document
from foundry_implementation_actor.domain.error import ActorError, ConfigError
from foundry_implementation_actor.gate.tree import Tree
from foundry_implementation_actor.gate.walk import Walk
from foundry_implementation_actor.system.files import read_below
from foundry_implementation_actor.system.yaml_compose import compose

FILE = "gate.yaml"
MAX_BYTES = 256 * 1024

PYTHON = "python"
PHP = "php"
LANGUAGES = (PYTHON, PHP)

_BOM = "\ufeff"


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


def read_settings(root: Path, house: Settings | None) -> Settings:
    """The settings of an app: its `gate.yaml` over its language's house.

    Args:
        root: the app's root.
        house: the house of the language that was detected; None when it has to be in the file.

    Raises:
        ConfigError: the file cannot be read or is no YAML, or the message lists everything that is
            wrong in it, each with line and column.
    """
    source = str(root / FILE)
    content = read_below(root, FILE, MAX_BYTES + 1)
    if content is None and house:
        return house
    try:
        document = compose(_decoded(content or b"", source), source)
    except ActorError as error:
        raise ConfigError(error.message, hint=error.hint, where=error.where) from None
    if document.root in (MISSING, None):
        document = Document(source, {})
    return _read(Walk(document), house)


def _read(walk: Walk, detected: Settings | None) -> Settings:
    if not walk.mapping((), KEYS):
        walk.finish()
    language = walk.choice("language", LANGUAGES, required=detected is None)
    house = HOUSES[language] if language else detected or HOUSES[PYTHON]
    tests = walk.folder("tests") or house.tests
    plugins = walk.plugins("plugins", tests)
    source = walk.folder("source", named=bool(plugins)) or house.source
    read = Settings(
        language=house.language,
        source=source,
        tests=tests,
        plugins=plugins,
        imports=walk.folders("imports") or _imports(house, source, plugins),
        namespaces=walk.namespaces("namespaces"),
        interpreter=walk.words("interpreter"),
        analyser=walk.words("analyser"),
        runner=walk.words("runner"),
        construct=walk.words("construct"),
        environment=walk.environment("environment"),
        test_names=walk.file_names("test_names") or house.test_names,
        own_tests=walk.files("own_tests"),
        probe_timeout_s=walk.seconds("probe_timeout_s", house.probe_timeout_s),
        test_timeout_s=walk.seconds("test_timeout_s", house.test_timeout_s),
        network=walk.flag("network"),
    )
    walk.finish()
    return read


def _imports(house: Settings, source: str, plugins: Mapping[str, Tree]) -> tuple[str, ...]:
    """Where modules are imported from when the file does not say: `src` for what lies in it, else the root."""
    if house.language != PYTHON:
        return ()
    sources = [tree.source for tree in plugins.values()]
    if source != house.source or not sources:
        sources.append(source)
    return tuple(dict.fromkeys("src" if path.startswith("src/") else "." for path in sources))


def _decoded(content: bytes, source: str) -> str:
    if len(content) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB", hint="shorten it", where=source)
    try:
        return content.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        what = f"byte {content[error.start]:#04x} is not UTF-8"
        raise ConfigError(what, hint="save the file as UTF-8", where=f"{source}:{line}:{column}") from None
