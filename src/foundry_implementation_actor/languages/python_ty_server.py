"""ty's language server, asked for the same findings as `ty check`: its settings, and its answers as the command's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.command import Command, Completed, Ended

_NAMED = (
    "--config-file",
    "--project",
    "--python",
    "--python-version",
    "--extra-search-path",
    "--output-format",
    "--color",
)
_ALONE = ("--exit-zero", "--no-progress")


@dataclass(frozen=True)
class Check:
    """A `ty check` taken apart: the program, its options, and the files that are asked about."""

    program: str
    options: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The options as ty's language server takes them."""
        environment: dict[str, Any] = {"extra-paths": list(self.options.get("--extra-search-path", ()))}
        for option, setting in (("--python", "python"), ("--python-version", "python-version")):
            if option in self.options:
                environment[setting] = self.options[option][-1]
        return {
            "diagnosticMode": "openFilesOnly",
            "configurationFile": self.options["--config-file"][-1],
            "configuration": {"environment": environment},
        }


def check_of(command: Command) -> Check | None:
    """The `ty check` that a command is; None for any other command and for options that are not known here."""
    if command.argv[1:2] != ("check",) or "--config-file" not in command.argv:
        return None
    options: dict[str, tuple[str, ...]] = {}
    paths, words = [], iter(command.argv[2:])
    for word in words:
        if word in _NAMED:
            options[word] = (*options.get(word, ()), next(words))
        elif not word.startswith("-"):
            paths.append(word)
        elif word not in _ALONE:
            return None
    return Check(command.argv[0], options, tuple(paths))


def hello(root: Path, settings: Mapping[str, Any], process: int) -> dict[str, Any]:
    """What the server is told first; columns are counted in characters then, as the command counts them."""
    uri = root.as_uri()
    capabilities = {"general": {"positionEncodings": ["utf-32"]}, "textDocument": {"diagnostic": {}}}
    return {
        "processId": process,
        "rootUri": uri,
        "workspaceFolders": [{"uri": uri, "name": root.name}],
        "initializationOptions": settings,
        "capabilities": capabilities,
    }


def is_plain(text: bytes) -> bool:
    """Whether a text means the same to the server, which is sent characters, as to the command, which reads bytes."""
    try:
        return not text.decode("utf-8").startswith("\ufeff")
    except UnicodeDecodeError:
        return False


def completed(command: Command, found: Sequence[tuple[str, Mapping[str, Any]]], seconds: float) -> Completed:
    """The server's findings, each with its path, as the command would have printed them."""
    records = [_record(path, item) for path, item in found if "code" in item]
    return Completed(command.argv, 0, json.dumps(records).encode(), b"", Ended.EXIT, seconds)


def _record(path: str, item: Mapping[str, Any]) -> dict[str, Any]:
    start, rule = item["range"]["start"], str(item["code"])
    # What follows the sentence explains it; the command leaves that out.
    sentence = str(item["message"]).partition("\n\n")[0]
    begin = {"line": start["line"] + 1, "column": start["character"] + 1}
    location = {"path": path, "positions": {"begin": begin}}
    return {"check_name": rule, "description": f"{rule}: {sentence}", "location": location}
