"""A sidecar's report: what an author sees before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foundry_implementation_actor.domain.document import Document
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.domain.report import Report
from foundry_implementation_actor.sidecar.check import check, unmigrated
from foundry_implementation_actor.sidecar.load import load


def lint(folder: str | Path) -> Report:
    """Check the sidecar of a folder (or a sidecar file) against every rule.

    Nothing is raised for what the file holds. A sidecar of another contract is warned of as
    UNMIGRATED and not looked into; running it is refused elsewhere.
    """
    try:
        document = load(folder)
    except ConfigError as error:
        return Report(errors=[str(error)])
    walk = check(document)
    errors = [document.line(fault) for fault in walk.errors]
    if unmigrated(document):
        return Report(warns=[f"{line}; nothing else was checked" for line in errors])
    warns = [document.line(fault) for fault in walk.warns]
    return Report(oks=[] if errors else [_summary(document)], warns=warns, errors=errors)


def _summary(document: Document) -> str:
    assert isinstance(document.root, Mapping), "only a document without errors is summed up"
    components, groundings = len(document.root["components"]), len(document.root["ground_in"])
    counts = f"{_count(components, 'component')}, {_count(groundings, 'knowledge source')}"
    return f"{document.source}: the sidecar conforms ({counts})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
