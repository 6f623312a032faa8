"""A command whose stderr is a terminal, as a person's is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


def on_terminal(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command with a terminal as its stderr; what it showed there."""
    ours, theirs = os.openpty()
    try:
        with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            shown = _read_all(ours)
            process.wait(60)
    finally:
        os.close(ours)
    return shown.decode()


def _read_all(terminal: int) -> bytes:
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65_536)
        except OSError:  # what Linux says once the last writer has closed a terminal
            return shown
        shown += chunk
