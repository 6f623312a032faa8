"""The console blocks of a document: what is typed, and what is shown below it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_TIMEOUT_S = 120.0


class Shown(NamedTuple):
    """A command as it stands in a document, its continuation lines joined, and the output shown below it."""

    command: str
    output: str


class Played(NamedTuple):
    """What a command printed on stdout, and its exit code."""

    output: str
    code: int


def shown(document: Path) -> list[Shown]:
    """Every command of a document's console blocks, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    text = "".join(blocks).replace("\\\n", " ")
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [Shown(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def play(commands: Iterable[str], environment: Mapping[str, str], folder: Path) -> list[Played]:
    """Type commands into one shell, so that a `cd` or `export` counts for those after it.

    Raises:
        AssertionError: the shell ended before the last command; the message holds what was said on stderr.
    """
    typed = list(commands)
    script = "".join(f"{command}\nprintf '\\0%s\\0' $?\n" for command in typed)
    done = subprocess.run(
        ["sh", "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=False,
        timeout=_TIMEOUT_S,
    )  # fmt: skip
    parts = done.stdout.split("\0")[:-1]
    assert len(parts) == 2 * len(typed), done.stdout + done.stderr
    return [Played(output, int(code)) for output, code in zip(parts[::2], parts[1::2], strict=True)]
