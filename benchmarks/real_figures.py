"""What the asks of `real_code.py` come to: its rows, their figures, and the table of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import real_mutations

RED, GREEN, UNASKED = "red", "green", "unasked"
EDIT = "edit"
UNMODIFIED = ("one call", "sections", EDIT)


@dataclass(frozen=True)
class Row:
    """One ask: of which class, what for, and what came of it.

    `landed` says that the file then was what was asked. `by` names the judge that refused, `test` what the
    own test says: of an unmodified body within the gate, of a mutation outside of it.
    """

    target: str
    what: str
    landed: bool
    by: str = ""
    why: str = ""
    test: str = ""
    seconds: float = 0.0


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """What the rows come to."""
    first = [row for row in rows if row.what in UNMODIFIED]
    return {
        "classes": sum(row.what != EDIT for row in first),
        "not asked for want of time": sum(row.what == "not asked" for row in rows),
        "not mutated for want of time": sum(row.what == "not mutated" for row in rows),
        "no place": sorted({row.target for row in rows if row.what == "no place"}),
        "without a test": sum(row.what == "no test" for row in rows),
        "unmodified": {way: _landed([row for row in first if row.what == way]) for way in UNMODIFIED},
        "own test of unmodified": dict(Counter(row.test.partition(" ")[0] for row in first if row.what != EDIT)),
        "wrongly refused": [_fault(row) for row in first if not row.landed],
        "mutations": {kind: _seen([row for row in rows if row.what == kind]) for kind in real_mutations.KINDS},
        "seconds in the gate": round(sum(row.seconds for row in rows)),
    }


def _landed(rows: Sequence[Row]) -> dict[str, int]:
    return {"asked": len(rows), "landed": sum(row.landed for row in rows)}


def _seen(rows: Sequence[Row]) -> dict[str, Any]:
    red, green = ([row for row in rows if row.test == test] for test in (RED, GREEN))
    return {
        "made": len(rows),
        "seen by the test": len(red),
        "of these refused": sum(not row.landed for row in red),
        "missed": [_fault(row) for row in red if row.landed],
        "not seen by the test": len(green),
        "refused by linkage or shape all the same": sum(row.by in {"linkage", "shape", "syntax"} for row in green),
        "refused by the test all the same": [_fault(row) for row in green if row.by not in _STATIC],
        "the test cannot be run bare": sum(row.test == UNASKED for row in rows),
        "refused by": dict(Counter(row.by for row in rows if row.by)),
    }


_STATIC = frozenset({"", "syntax", "shape", "linkage"})


def _fault(row: Row) -> dict[str, str]:
    return {"class": row.target, "what": row.what, "by": row.by, "why": row.why[-300:]}


def total(packages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures of all packages together, their lists as counts."""
    summed: dict[str, Any] = {}
    for found in packages.values():
        _add(summed, found["figures"])
    return summed


def _add(summed: dict[str, Any], found: dict[str, Any]) -> None:
    for key, value in found.items():
        if isinstance(value, dict):
            _add(summed.setdefault(key, {}), value)
        else:
            summed[key] = summed.get(key, 0) + (len(value) if isinstance(value, list) else value)


def table(packages: dict[str, dict[str, Any]]) -> str:
    """The table of `docs/gate.md`."""
    lines = [
        "| package | classes | landed | by `edit` | mutated |" + "".join(f" {kind} |" for kind in real_mutations.KINDS)
    ]
    lines.append("|---|---|---|---|---|" + "---|" * len(real_mutations.KINDS))
    named = {f"{name} {found['version']}": found["figures"] for name, found in packages.items()}
    for name, found in {**named, "all": total(packages)}.items():
        ways = found["unmodified"]
        landed = sum(ways[way]["landed"] for way in ("one call", "sections"))
        classes = found["classes"] + found["not asked for want of time"]
        cells = [
            name,
            str(classes),
            f"{landed} of {found['classes']}",
            f"{ways[EDIT]['landed']} of {ways[EDIT]['asked']}",
        ]
        cells.append(str(classes - found["not mutated for want of time"]))
        for mutation in found["mutations"].values():
            more = mutation["refused by linkage or shape all the same"]
            cells.append(
                f"{mutation['of these refused']} of {mutation['seen by the test']}" + (f", +{more}" * bool(more))
            )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
