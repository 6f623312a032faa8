"""The file of SESSION_SCRIPT, which the scripted engine plays."""

from __future__ import annotations

from pathlib import Path

from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.engines.script import Script, read_script

_HINT = "set SESSION_SCRIPT to a script that can be read"


def script_in(path: Path) -> Script:
    """Read and check a script.

    Raises:
        SettingsError: the file cannot be read.
        ActorError: BAD_REQUEST with every error in it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"SESSION_SCRIPT cannot be read: {error.strerror}", hint=_HINT, where=str(path)) from error
    except UnicodeDecodeError as error:
        said = f"SESSION_SCRIPT is not UTF-8 (byte {error.start + 1})"
        raise SettingsError(said, hint="save the file as UTF-8", where=str(path)) from error
    return read_script(text, str(path))
