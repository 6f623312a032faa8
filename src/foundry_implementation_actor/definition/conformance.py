"""Whether a use's cards still say what the definition says on the wire.

Compared is what a caller is held to: the doors, each door's request and completion schema, and its
engine, as the messaging framework derives them from the cards. Prose and names are a use's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from papeete_actor_synchronous_messaging import card as framework

from foundry_implementation_actor.definition.cards import CARDS, DOORS, cards_path, missing
from foundry_implementation_actor.domain.report import Report

_ADVICE = "run render-cards to write the cards again"


class _Door(NamedTuple):
    kind: str
    request: Mapping[str, Any]
    completion: tuple[Mapping[str, Any], ...]
    engine: str | None


def check(folder: str | Path) -> Report:
    """Compare the cards of a folder with the definition.

    No card at all is fine (they are rendered at image build); an incomplete set is an error that
    names the missing ones. Nothing is raised for what the cards hold.
    """
    absent = missing(folder)
    if len(absent) == len(CARDS):
        return Report(oks=[f"{folder}: no cards, so those of the definition are rendered"])
    if absent:
        return Report(errors=[f"{Path(folder) / name}: the card is missing; {_ADVICE}" for name in absent])
    try:
        use = _doors(folder)
    except Exception as error:  # noqa: BLE001 - the loader lets through whatever a malformed card makes it raise
        return Report(errors=[_one_line(f"{folder}: the cards cannot be loaded: {error}; {_ADVICE}")])
    errors = [f"{Path(folder) / DOORS}: {difference}; {_ADVICE}" for difference in _differences(use)]
    return Report(oks=[] if errors else [f"{folder}: the cards agree with the definition"], errors=errors)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _doors(folder: str | Path) -> dict[str, _Door]:
    card = framework.load(folder)
    return {
        offer.id: _Door(kind, offer.request_schema, tuple(offer.completion_schema or ()), offer.engine)
        for kind, offers in (("actions", card.actions), ("queries", card.queries))
        for offer in offers.values()
    }


def _differences(use: Mapping[str, _Door]) -> Iterator[str]:
    defined = _doors(cards_path())
    for name in sorted(use.keys() - defined.keys()):
        yield f"the door {name!r} is not in the definition"
    for name, door in defined.items():
        if name not in use:
            yield f"the door {name!r} is missing"
        else:
            yield from (f"the door {name!r} {what}" for what in _door_differences(use[name], door))


def _door_differences(use: _Door, defined: _Door) -> Iterator[str]:
    if use.kind != defined.kind:
        yield f"is an entry of {use.kind}, not of {defined.kind}"
    if use.engine != defined.engine:
        yield f"names the engine {use.engine!r}, not {defined.engine!r}"
    for what in _schema_differences(use.request, defined.request):
        yield f"takes another request: {what}"
    if len(use.completion) == len(defined.completion) == 1:
        for what in _schema_differences(use.completion[0], defined.completion[0]):
            yield f"gives another completion: {what}"
    elif _canonical(use.completion) != _canonical(defined.completion):
        yield "gives other completions: not the outcomes of the definition"


def _schema_differences(use: Mapping[str, Any], defined: Mapping[str, Any]) -> Iterator[str]:
    mine, theirs = use["properties"], defined["properties"]
    yield from (f"without the field {name!r}" for name in theirs if name not in mine)
    yield from (f"with the field {name!r}" for name in mine if name not in theirs)
    yield from (f"with another type of {name!r}" for name in mine if name in theirs and mine[name] != theirs[name])
    for name in sorted(set(use["required"]) ^ set(defined["required"])):
        if name in mine and name in theirs:
            yield f"where {name!r} is {'required' if name in use['required'] else 'optional'}"
    if use.get("additionalProperties") != defined.get("additionalProperties"):
        yield "that is open where it was closed, or closed where it was open"


def _canonical(schemas: tuple[Mapping[str, Any], ...]) -> list[str]:
    return sorted(json.dumps({**schema, "required": sorted(schema["required"])}, sort_keys=True) for schema in schemas)
