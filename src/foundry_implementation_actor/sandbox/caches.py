"""Where ordinary tools keep what they download and compile, when only HOME may be written."""

from __future__ import annotations

from pathlib import Path

_FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "PIP_CACHE_DIR": ".cache/pip",
    "npm_config_cache": ".cache/npm",
    "CARGO_HOME": ".cargo",
    "GOPATH": ".cache/go",
    "COMPOSER_HOME": ".composer",
}


def cache_environment(home: Path) -> dict[str, str]:
    """Variables that point the caches of pip, npm, cargo, go and composer below a HOME, and turn Python's own off.

    A place of its own for compiled Python would hide what is compiled already, the standard library's too: each
    session would compile it once more, for a second or two.
    """
    return {name: str(home / folder) for name, folder in _FOLDERS.items()} | {"PYTHONDONTWRITEBYTECODE": "1"}
