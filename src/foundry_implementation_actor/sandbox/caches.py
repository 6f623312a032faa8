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
    "PYTHONPYCACHEPREFIX": ".cache/python",
}


def cache_environment(home: Path) -> dict[str, str]:
    """Variables that point the caches of pip, npm, cargo, go, composer and Python's own below a HOME."""
    return {name: str(home / folder) for name, folder in _FOLDERS.items()}
