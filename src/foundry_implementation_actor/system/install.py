"""The command that mends a missing extra: this package again, from where it was installed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from foundry_implementation_actor.domain.package import DISTRIBUTION, FIRST_RELEASE


def install(extra: str, path: Sequence[str] | None = None) -> str:
    """The command that installs this package with one of its extras.

    From the folder that it was installed from, as editable as it is now, when that folder is still there; else a
    release. Into the environment that runs now, whichever `pip` is on PATH.

    Args:
        extra: the name of the extra.
        path: where installed packages are looked for; `sys.path` when None.
    """
    folder, editable = _origin(sys.path if path is None else path)
    wanted = f"{folder}[{extra}]" if folder else f"{DISTRIBUTION}[{extra}]>={FIRST_RELEASE}"
    return f"{shlex.quote(sys.executable)} -m pip install {'--editable ' if editable else ''}{shlex.quote(wanted)}"


def _origin(path: Sequence[str]) -> tuple[str, bool]:
    """The folder that this package was installed from, empty for none, and whether it is used from there.

    Installers write it down (PEP 610). Read without importlib.metadata, which takes 20 ms to load.
    """
    pattern = f"{DISTRIBUTION.replace('-', '_')}-*.dist-info"
    installed = next((found for folder in path for found in Path(folder).glob(pattern)), None)
    try:
        written = json.loads(Path(installed or "", "direct_url.json").read_text())
        folder, kind = unquote(urlsplit(written["url"]).path), written["dir_info"]
    except (OSError, ValueError, KeyError):  # a release, or something else that is no folder
        return "", False
    return (folder, bool(kind.get("editable"))) if Path(folder, "pyproject.toml").is_file() else ("", False)
