"""What a check found: what conforms, what is worth a second look, what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """The findings of one check, one line of text each; only `errors` make it a failure."""

    oks: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def joined(self, other: Report) -> Report:
        """A new report with the findings of both, this one's first."""
        return Report(
            oks=[*self.oks, *other.oks], warns=[*self.warns, *other.warns], errors=[*self.errors, *other.errors]
        )
