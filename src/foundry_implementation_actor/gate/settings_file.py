"""Reading `gate.yaml` at an app's root. Every key is optional; what each means stands in `Settings`."""

from __future__ import annotations

from collections.abc import Mapping

from foundry_implementation_actor.domain.document import MISSING, Document
from foundry_implementation_actor.domain.error import ActorError, ConfigError
from foundry_implementation_actor.gate.settings import HOUSES, KEYS, LANGUAGES, MAX_BYTES, PYTHON, Settings
from foundry_implementation_actor.gate.tree import Tree
from foundry_implementation_actor.gate.walk import Walk
from foundry_implementation_actor.system.yaml_compose import compose, decoded


def read_settings(content: bytes, source: str, house: Settings | None) -> Settings:
    """The settings of an app: its `gate.yaml` over its language's house.

    Args:
        content: the file's, at most one byte more than `MAX_BYTES` of it.
        source: the file's name in messages.
        house: the house of the language that was detected; None when it has to be in the file.

    Raises:
        ConfigError: the file is no YAML, or the message lists everything that is wrong in it, each
            with line and column.
    """
    if len(content) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB", hint="shorten it", where=source)
    try:
        document = compose(decoded(content, source), source)
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
