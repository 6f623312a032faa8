"""From a folder or a file to a document: everything that can be wrong before the first key is read."""

from __future__ import annotations

import os
import stat
from difflib import get_close_matches
from pathlib import Path

from foundry_implementation_actor.domain.document import MISSING, Document
from foundry_implementation_actor.domain.error import ActorError, ConfigError
from foundry_implementation_actor.system.yaml_compose import compose, decoded

SIDECAR = "actor-agentic-context.yaml"
MAX_BYTES = 256 * 1024

_NEAR = 0.85


def load(folder_or_file: str | Path) -> Document:
    """Read a sidecar.

    Args:
        folder_or_file: the folder that holds `actor-agentic-context.yaml`, or a file of any name.

    Raises:
        ConfigError: there is no such file, it cannot be read, it is larger than `MAX_BYTES`, it is
            not UTF-8 text, or it is not one YAML document.
    """
    path = Path(folder_or_file)
    path = path / SIDECAR if _is_folder(path) else path
    source = shown(path)
    text = decoded(_content(path, source), source)
    try:
        document = compose(text, source)
    except ActorError as error:
        raise ConfigError(error.message, hint=error.hint, where=error.where) from None
    if document.root is MISSING:
        raise ConfigError("the file is empty", hint="write a sidecar; README shows one", where=source)
    return document


def shown(path: Path) -> str:
    """A path as a message can print it, whatever bytes it is made of."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else repr(text)


def folder_of(folder_or_file: str | Path) -> Path:
    """The folder that holds the sidecar named this way, where a use's cards belong too."""
    path = Path(folder_or_file)
    return path if _is_folder(path) else path.parent


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - unlike pathlib's it raises nothing for a name that cannot be


def _content(path: Path, source: str) -> bytes:
    content = _read(path, source)
    if content is None:
        raise ConfigError("not a file", hint=f"put the sidecar there as the file {SIDECAR}", where=source)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB", hint="a sidecar is a page of YAML", where=source)
    return content


def _read(path: Path, source: str) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError("no such file", hint=_instead(path), where=source) from None
    except ValueError:
        raise ConfigError("no path can hold a NUL", hint="name another folder", where=source) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot be read ({reason})", hint="correct the path or its mode", where=source) from None


def _instead(path: Path) -> str:
    """What to do about a sidecar that is not there: often it is, under nearly its name."""
    try:
        names = [shown(Path(name)) for name in os.listdir(path.parent)] if path.name == SIDECAR else []  # noqa: PTH208 - names only
    except OSError:
        names = []
    near = get_close_matches(SIDECAR, names, n=1, cutoff=_NEAR)
    return f"rename {near[0]} to {SIDECAR}" if near else f"create {SIDECAR} there; README shows one to start from"
