"""Taking the values of a `gate.yaml`, and collecting what is wrong with each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from foundry_implementation_actor.domain.document import (
    MISSING,
    Document,
    KeyPath,
    Other,
    Wrong,
    is_list,
    kind,
    quoted,
)
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.domain.unit import is_identifier
from foundry_implementation_actor.gate.tree import Tree
from foundry_implementation_actor.sidecar import grammar

_Rule = Callable[[str], Wrong | None]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMESPACE = re.compile(r"[A-Za-z_]\w*(?:\\[A-Za-z_]\w*)*\\?")
_FILE_NAME = re.compile(r"[\w.+@-]+")
_PLUGIN_KEYS = ("source", "tests")
_LONGEST_S = 3_600
_TRUE, _FALSE = "true", "false"


class Walk:
    """One pass over one document; `finish` raises everything that was found wrong."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._faults = list(document.faults)

    def finish(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: each fault on a line of its own, with line, column and key.
        """
        if self._faults:
            faults = sorted(self._faults, key=lambda fault: fault.place or (0, 0))
            raise ConfigError("\n".join(self._document.line(fault) for fault in faults))

    def mapping(self, at: KeyPath, known: tuple[str, ...] = ()) -> bool:
        """Whether a mapping stands there; a key that is not among the known ones (if any are given) is wrong."""
        value = self._document.get(at)
        if not isinstance(value, Mapping):
            self._wrong(at, f"must be a mapping, not {kind(value)}", "write `key: value` lines")
            return False
        for key in value if known else ():
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                advice = f"did you mean `{near[0]}`?" if near else f"the keys here are {', '.join(known)}"
                self._faults.append(self._document.fault((*at, key), Wrong("is not a key", advice), key=True))
        return True

    def choice(self, key: str, choices: tuple[str, ...], *, required: bool = False) -> str | None:
        """One of some words."""
        advice = f"write {' or '.join(f'`{choice}`' for choice in choices)}"

        def rule(value: str) -> Wrong | None:
            return None if value in choices else Wrong(f"{quoted(value)} is not known", advice)

        return self._text((key,), rule, advice) if required else self._optional((key,), rule, advice)

    def folder(self, key: str, *, named: bool = True) -> str | None:
        """A folder below the root in which `{plugin}` may stand; `.` is the root.

        With `named` false, a folder without `{plugin}` has to end in a plugin's name.
        """
        path = _bare(self._optional((key,), _folder, "write a folder such as `src/{plugin}`"))
        if path and not named and "{plugin}" not in path and not is_identifier(path.rpartition("/")[2]):
            what = f"{quoted(path)} names no plugin"
            self._wrong((key,), what, "write `{plugin}` in it, or name the plugins in `plugins`")
        return path

    def folders(self, key: str) -> tuple[str, ...] | None:
        """A list of folders below the root."""
        if not self._has((key,)):
            return None
        return tuple(path.removesuffix("/") for path in self._texts((key,), _plain_folder, "write `[src]`"))

    def words(self, key: str) -> tuple[str, ...]:
        """A command as a list of words; empty when the key is not there."""
        if not self._has((key,)):
            return ()
        return tuple(self._texts((key,), _free, "write the command as a list of words, such as `[bin/check, --all]`"))

    def file_names(self, key: str) -> tuple[str, ...] | None:
        """A list of file names in which `{class}` and `{module}` may stand."""
        if not self._has((key,)):
            return None
        return tuple(self._texts((key,), _test_name, "write names such as `['test_{module}.py']`"))

    def files(self, key: str) -> dict[str, str]:
        """A table from a name to a file below the root."""
        return dict(self._table((key,), _module, _file, "write `package.module: tests/test_module.py`"))

    def namespaces(self, key: str) -> dict[str, str]:
        """A table from a namespace prefix to a folder, the separator at the end of each taken off."""
        found = self._table((key,), _namespace, _plain_folder, "write `App: src`")
        return {name.removesuffix("\\"): path.removesuffix("/") for name, path in found}

    def environment(self, key: str) -> dict[str, str]:
        """A table of environment variables; numbers and booleans are taken as they are written."""
        return dict(self._table((key,), _variable, _free, "write `NAME: value`", others=True))

    def plugins(self, key: str, tests: str) -> dict[str, Tree]:
        """A table of plugins: each a source folder or file, or `{source, tests}`; `tests` is the default."""
        found: dict[str, Tree] = {}
        if not self._has((key,)) or not self.mapping((key,)):
            return found
        for name in self._keys((key,), _plugin):
            at = (key, name)
            if isinstance(self._document.get(at), str):
                source, own = self._text(at, _plain_folder, "write its folder"), None
            elif self.mapping(at, _PLUGIN_KEYS):
                source = self._text((*at, "source"), _plain_folder, "write its source folder, or its one file")
                own = self._optional((*at, "tests"), _plain_folder, "write its test folder")
            else:
                continue
            found[name] = Tree(_bare(source) or "", _bare(own) or tests.replace("{plugin}", name))
        return found

    def seconds(self, key: str, default: float) -> float:
        """A time limit in seconds."""
        value = self._document.get((key,))
        if value is MISSING:
            return default
        number = _number(value)
        if number is None or not 0 < number <= _LONGEST_S:
            self._wrong((key,), f"must be a time, not {kind(value)}", f"write seconds from 1 to {_LONGEST_S}")
            return default
        return number

    def flag(self, key: str) -> bool:
        """A boolean; false when the key is not there."""
        value = self._document.get((key,))
        word = value.text.lower() if isinstance(value, Other) else ""
        if value is not MISSING and word not in {_TRUE, _FALSE}:
            self._wrong((key,), f"must be true or false, not {kind(value)}", "write `true` or `false`")
        return word == _TRUE

    def _has(self, at: KeyPath) -> bool:
        return self._document.get(at) is not MISSING

    def _wrong(self, at: KeyPath, what: str, write: str) -> None:
        self._faults.append(self._document.fault(at, Wrong(what, write)))

    def _optional(self, at: KeyPath, rule: _Rule, form: str) -> str | None:
        return self._text(at, rule, form) if self._has(at) else None

    def _text(self, at: KeyPath, rule: _Rule, form: str, *, others: bool = False) -> str | None:
        value = self._document.get(at)
        if others and isinstance(value, Other):
            value = value.text
        if not isinstance(value, str):
            what = "is missing" if value is MISSING else f"must be a string, not {kind(value)}"
            self._wrong(at, what, form)
            return None
        wrong = grammar.unprintable(value) or (rule(value) if value.strip() else Wrong("is empty", form))
        if wrong:
            self._wrong(at, *wrong)
        return None if wrong else value

    def _texts(self, at: KeyPath, rule: _Rule, form: str) -> Iterator[str]:
        value = self._document.get(at)
        if not is_list(value) or not value:
            what = "is empty" if is_list(value) else f"must be a list, not {kind(value)}"
            self._wrong(at, what, form)
            return
        for number in range(len(value)):
            text = self._text((*at, number), rule, form)
            if text is not None:
                yield text

    def _table(
        self, at: KeyPath, key_rule: _Rule, rule: _Rule, form: str, *, others: bool = False
    ) -> Iterator[tuple[str, str]]:
        if self._has(at) and self.mapping(at):
            for name in self._keys(at, key_rule):
                text = self._text((*at, name), rule, form, others=others)
                if text is not None:
                    yield name, text

    def _keys(self, at: KeyPath, rule: _Rule) -> Iterator[str]:
        value = self._document.get(at)
        for name in value if isinstance(value, Mapping) else ():
            wrong = rule(name)
            if wrong:
                self._faults.append(self._document.fault((*at, name), wrong, key=True))
            else:
                yield name


def _bare(path: str | None) -> str | None:
    return path.removesuffix("/") if path else path


def _free(_value: str) -> Wrong | None:
    return None


def _plain_folder(value: str) -> Wrong | None:
    return grammar.directory_or_root(value)


def _file(value: str) -> Wrong | None:
    return Wrong(f"{quoted(value)} is a folder", "write a file") if value.endswith("/") else grammar.directory(value)


def _folder(value: str) -> Wrong | None:
    wrong = _placeholders(value, ("plugin",)) or _plain_folder(value.replace("{plugin}", "plugin"))
    held = [part for part in value.split("/") if "{plugin}" in part]
    if wrong or held in ([], ["{plugin}"]):
        return wrong
    return Wrong(f"{quoted(value)} does not have `{{plugin}}` as one whole part", "write it such as `src/{plugin}`")


def _test_name(value: str) -> Wrong | None:
    bare = _placeholders(value, ("class", "module"))
    plain = _PLACEHOLDER.sub("x", value)
    if bare or _FILE_NAME.fullmatch(plain):
        return bare
    return Wrong(f"{quoted(value)} is no file name", "write a name without a folder, such as `test_{module}.py`")


def _placeholders(value: str, known: tuple[str, ...]) -> Wrong | None:
    unknown = next((name for name in _PLACEHOLDER.findall(value) if name not in known), None)
    if unknown is None:
        return None
    return Wrong(f"{{{unknown}}} is no placeholder here", f"write {' or '.join(f'{{{name}}}' for name in known)}")


def _module(name: str) -> Wrong | None:
    if all(part.isidentifier() for part in re.split(r"[.\\]", name)):
        return None
    return Wrong(f"{quoted(name)} is no module or class", "write it as it is imported, such as `package.module`")


def _namespace(name: str) -> Wrong | None:
    return None if _NAMESPACE.fullmatch(name) else Wrong(f"{quoted(name)} is no namespace", "write it such as `App`")


def _variable(name: str) -> Wrong | None:
    if _VARIABLE.fullmatch(name):
        return None
    return Wrong(f"{quoted(name)} is no variable's name", "use letters, digits and _")


def _plugin(name: str) -> Wrong | None:
    if is_identifier(name):
        return None
    return Wrong(f"{quoted(name)} is no plugin's name", "use letters, digits and _, not starting with a digit")


def _number(value: object) -> float | None:
    try:
        number = float(value.text) if isinstance(value, Other) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
