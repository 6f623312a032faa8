"""A sidecar's report: what an author sees before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from foundry_implementation_actor.domain.document import Document, Fault, dotted
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.domain.report import Detail, Report
from foundry_implementation_actor.sidecar.check import check, unmigrated
from foundry_implementation_actor.sidecar.load import load

_PLACE = re.compile(r"(.*):([0-9]+):([0-9]+)", re.DOTALL)


def lint(folder: str | Path) -> Report:
    """Check the sidecar of a folder (or a sidecar file) against every rule.

    Nothing is raised for what the file holds. A sidecar of another contract is warned of as
    UNMIGRATED and not looked into; running it is refused elsewhere.
    """
    try:
        document = load(folder)
    except ConfigError as error:
        return Report(errors=[str(error)], details={str(error): _of_error(error)})
    walk = check(document)
    if unmigrated(document):
        only = {f"{document.line(fault)}; nothing else was checked": _of(document, fault) for fault in walk.errors}
        return Report(warns=list(only), details=only)
    errors, warns = ([document.line(fault) for fault in faults] for faults in (walk.errors, walk.warns))
    details = {document.line(fault): _of(document, fault) for fault in (*walk.errors, *walk.warns)}
    return Report(oks=[] if errors else [_summary(document)], warns=warns, errors=errors, details=details)


def _of(document: Document, fault: Fault) -> Detail:
    line, column = fault.place or (None, None)
    return Detail(document.source, line, column, dotted(fault.at), fault.wrong.what, fault.wrong.write)


def _of_error(error: ConfigError) -> Detail:
    found = _PLACE.fullmatch(error.where)
    if found is None:
        return Detail(error.where, message=error.message, write=error.hint)
    return Detail(found[1], int(found[2]), int(found[3]), message=error.message, write=error.hint)


def _summary(document: Document) -> str:
    assert isinstance(document.root, Mapping), "only a document without errors is summed up"
    components, groundings = len(document.root["components"]), len(document.root["ground_in"])
    counts = f"{_count(components, 'component')}, {_count(groundings, 'knowledge source')}"
    return f"{document.source}: the sidecar conforms ({counts})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
