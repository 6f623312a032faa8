"""PHP, as the gate judges it: see `port.Language` for the names."""

from __future__ import annotations

import re
from dataclasses import replace

from foundry_implementation_actor.domain.app import App, Run
from foundry_implementation_actor.domain.command import Command, Ended
from foundry_implementation_actor.domain.unit import Candidate
from foundry_implementation_actor.domain.verdict import Finding
from foundry_implementation_actor.languages.php_place import class_name, environment, why_silent
from foundry_implementation_actor.languages.php_probe import probe
from foundry_implementation_actor.languages.php_stan import analyse
from foundry_implementation_actor.languages.php_tests import own_test
from foundry_implementation_actor.languages.php_tree import is_scaffold, shape, strict_types
from foundry_implementation_actor.languages.port import Reading

__all__ = [
    "NAME",
    "class_name",
    "command_environment",
    "is_scaffold",
    "linkage",
    "own_test",
    "shape",
    "strict_types",
    "syntax",
]

NAME = "php"

# Without the host's settings, and with the one that a short tag could hide behind.
_LINT = ("-n", "-d", "short_open_tag=0", "-d", "display_errors=1", "-d", "log_errors=0", "-d", "html_errors=0", "-l")
_ERROR = re.compile(r"^(?:Parse|Fatal) error: +(.+) in \S.* on line (\d+)$", re.MULTILINE)
_WARNING = re.compile(r"^((?:Deprecated|Warning|Notice): .+?) in \S.* on line (\d+)$", re.MULTILINE)
_CLEAN = "No syntax errors detected"
_BOM = b"\xef\xbb\xbf"

# What the probe and PHPStan say of a member that is not there, or is called in another way.
_MEMBERS = frozenset(
    {
        "unknown-method",
        "hidden-method",
        "not-static",
        "unknown-property",
        "unknown-constant",
        "arguments",
        "not-instantiable",
    }
)
_MEMBER = re.compile(
    r"undefined (static )?(method|property)|undefined constant .*::|(private|protected) (static )?(method|property)"
    r"|invoked with|(Unknown|Missing) parameter|does not have a constructor|Cannot instantiate|instance method"
)

command_environment = environment


def syntax(app: App, candidate: Candidate, run: Run) -> Reading:
    """Whether the app's interpreter compiles the body (`php -l`)."""
    argv = (*app.interpreter, *_LINT)
    completed = run(Command(argv, app.root, environment(app), app.probe_timeout_s, stdin=candidate.content))
    path = candidate.place.path
    errors = _ERROR.findall(completed.text)
    if completed.ended is Ended.EXIT and completed.code and errors:
        found = (Finding("syntax", f"{path}:{line}", _hinted(message, candidate)) for message, line in errors)
        return Reading(tuple(found))
    if not completed.ok or _CLEAN not in completed.text:
        return Reading(cause=why_silent(completed, "php -l"))
    warnings = [f"{message} on line {line}" for message, line in _WARNING.findall(completed.text)]
    return Reading(evidence="; ".join(warnings[:3]))


def _hinted(message: str, candidate: Candidate) -> str:
    if candidate.content.startswith(_BOM):
        return f"{message} (the file begins with a byte order mark, which PHP takes for text before <?php)"
    return message


def linkage(app: App, candidate: Candidate, own_test: bytes, run: Run) -> Reading:  # noqa: ARG001 - the probe reads it itself
    """Whether every name of the body leads somewhere: by the app's PHPStan when it ships one, else by the probe."""
    reading = analyse(app, candidate, run) if app.analyser else probe(app, candidate, run)
    if candidate.place.is_test:
        return replace(reading, findings=tuple(one for one in reading.findings if not _to_be_written(one)))
    return reading


def _to_be_written(finding: Finding) -> bool:
    """Whether a test only asks for what a body that is still to be written may have."""
    return finding.rule in _MEMBERS or (finding.rule == "phpstan" and _MEMBER.search(finding.message) is not None)
