"""The checked configuration that everything above this floor runs from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.document import Document
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.sidecar.check import build, check
from foundry_implementation_actor.sidecar.load import load


@dataclass(frozen=True)
class CapabilityConfig(Capability):
    """A capability as a sidecar declares it, every rule of the contract kept."""

    @classmethod
    def load(cls, folder_or_file: str | Path) -> Self:
        """Read and check a sidecar.

        Args:
            folder_or_file: the folder that holds `actor-agentic-context.yaml`, or the file itself.

        Raises:
            ConfigError: with every error of the file, one a line, each with its position.
        """
        return cls._checked(load(folder_or_file))

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], *, source: str = "<dict>") -> Self:
        """Check plain values, with the keys and rules of the file.

        Args:
            raw: what the YAML would hold: mappings, lists (or tuples) and strings.
            source: what to call them in messages.

        Raises:
            ConfigError: with every error, one a line.
        """
        return cls._checked(Document(source, raw))

    @classmethod
    def _checked(cls, document: Document) -> Self:
        errors = check(document).errors
        if len(errors) == 1:
            raise ConfigError(errors[0].wrong.what, hint=errors[0].wrong.write, where=document.where(errors[0]))
        if errors:
            raise ConfigError("\n".join(document.line(error) for error in errors))
        return cls(**build(document))
