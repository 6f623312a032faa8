"""The text of what `make` writes: the least that the gate's own judges let pass."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What can be made."""

    PLUGIN = "plugin"
    SERVICE = "service"
    VALUE_OBJECT = "value-object"
    INTERFACE = "interface"
    TEST = "test"


ALIASES = {"class": Kind.SERVICE, "value": Kind.VALUE_OBJECT, "protocol": Kind.INTERFACE}
"""Other words for the kinds."""

_PYTHON = {
    Kind.SERVICE: '''\
"""The service {name} of the plugin {plugin}."""


class {name}:
    """To be written: what it does."""
''',
    Kind.VALUE_OBJECT: '''\
"""The value {name} of the plugin {plugin}."""

from dataclasses import dataclass


@dataclass(frozen=True)
class {name}:
    """To be written: what it holds."""
''',
    Kind.INTERFACE: '''\
"""The interface {name} of the plugin {plugin}."""

from typing import Protocol


class {name}(Protocol):
    """To be written: what it asks of those that have it."""
''',
    Kind.TEST: '''\
"""What {name} has to do."""

from {module} import {name}


class Test{name}:
    def test_it_is_there(self) -> None:
        assert {name}.__name__ == "{name}"
''',
}

_PHP = {
    Kind.SERVICE: """\
<?php

declare(strict_types=1);

{namespace}final class {name}
{{
}}
""",
    Kind.INTERFACE: """\
<?php

declare(strict_types=1);

{namespace}interface {name}
{{
}}
""",
    Kind.TEST: """\
<?php

declare(strict_types=1);

{namespace}use PHPUnit\\Framework\\TestCase;
{subject}
final class {test} extends TestCase
{{
    public function testItIsThere(): void
    {{
        self::assertTrue(class_exists({spoken}::class) || interface_exists({spoken}::class));
    }}
}}
""",
}
_PHP[Kind.VALUE_OBJECT] = _PHP[Kind.SERVICE]


def python_text(kind: Kind, *, name: str, plugin: str, module: str) -> bytes:
    """A Python module; for a test, `name` is the class that it judges and `module` that class's module."""
    return _PYTHON[kind].format(name=name, plugin=plugin, module=module).encode()


def php_text(kind: Kind, *, name: str, module: str, test: str = "", test_module: str = "") -> bytes:
    """A PHP file; for a test, `name` is the class that it judges and `module` that class's namespace.

    A namespace that is empty is left out: the class is in the global one then.
    """
    inside = test_module if kind is Kind.TEST else module
    namespace = f"namespace {inside};\n\n" if inside else ""
    subject = f"use {module}\\{name};\n" if module else ""
    spoken = name if module or not inside else f"\\{name}"
    return _PHP[kind].format(name=name, spoken=spoken, namespace=namespace, subject=subject, test=test).encode()
