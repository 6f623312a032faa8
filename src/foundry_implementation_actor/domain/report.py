"""What a check found: what conforms, what is worth a second look, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Detail(NamedTuple):
    """The parts of one line: file, line and column (from 1), the key, what is wrong, what to write instead.

    What a finding has not is None or empty.
    """

    where: str = ""
    line: int | None = None
    column: int | None = None
    key: str = ""
    message: str = ""
    write: str = ""


@dataclass
class Report:
    """The findings of one check, one line of text each; only `errors` make it a failure.

    `details` holds the parts of those lines that have any, by the line.
    """

    oks: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    details: Mapping[str, Detail] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def joined(self, other: Report) -> Report:
        """A new report with the findings of both, this one's first."""
        return Report(
            oks=[*self.oks, *other.oks],
            warns=[*self.warns, *other.warns],
            errors=[*self.errors, *other.errors],
            details={**self.details, **other.details},
        )
