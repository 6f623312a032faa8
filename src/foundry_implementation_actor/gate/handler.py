"""The contract's `ImplementHandler`: dicts in, dicts out, over the typed gate (CONTRACT 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.unit import Place, Target
from foundry_implementation_actor.gate import house
from foundry_implementation_actor.gate.answer import Answer, answer, error_answer
from foundry_implementation_actor.gate.ask import Wish, edit_wish, wish
from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.trial import Notice


@dataclass(frozen=True)
class RootResolver:
    """Finds the app that a call is about.

    Args:
        start: a folder of the app; the current directory when None, looked up at each call.
    """

    start: str | Path | None = None

    def house(self) -> House:
        """The house of the app around the start folder.

        Raises:
            ActorError: BAD_REQUEST when no app is there.
        """
        return House.open(Path.cwd() if self.start is None else Path(self.start))


@dataclass(frozen=True)
class ConstructionProbe:
    """How the app's container builds a class: an argv; empty: as `gate.yaml` says."""

    command: Sequence[str] = ()


class ImplementHandler:
    """Lands the body of a class that `make` scaffolded; whatever it is given, it answers with a dict.

    Args:
        roots: finds the app.
        analyzer: the app's analyser, a program or an argv; as the house says when None.
        behavior_runner: the app's test runner, a program or an argv; as the house says when None.
        construction: how the app's container builds a class.
        notice: told what the gate is doing.
    """

    def __init__(
        self,
        roots: RootResolver = RootResolver(),
        analyzer: str | Sequence[str] | None = None,
        behavior_runner: str | Sequence[str] | None = None,
        construction: ConstructionProbe = ConstructionProbe(),
        *,
        notice: Notice = lambda _: None,
    ) -> None:
        self._roots = roots
        self._analyser = _argv(analyzer)
        self._runner = _argv(behavior_runner)
        self._construct = tuple(construction.command)
        self._notice = notice

    def handle(self, input: Mapping[str, Any]) -> Answer:  # noqa: A002 - the contract's name
        """Land, stage, finish or batch; `{"ok": …}` with the keys of CONTRACT 8."""
        return self._answered(lambda: wish(input))

    def edit(self, input: Mapping[str, Any]) -> Answer:  # noqa: A002 - the contract's name
        """Apply exact pairs to the current text and land what comes of it."""
        return self._answered(lambda: edit_wish(input))

    @staticmethod
    def scaffold(root: str | Path, plugin: str, class_: str) -> str | None:
        """The path of the file that a class would land in; None when no scaffold declares it."""
        try:
            found = House.open(Path(root), upward=False).find(Target(plugin, class_))
        except (ActorError, OSError, ValueError, TypeError):
            return None
        return str(Path(root) / found.path) if isinstance(found, Place) else None

    @staticmethod
    def unscaffolded(plugin: str, class_: str, act: str) -> str:
        """What a caller is told when nothing declares the class."""
        return house.unscaffolded(plugin, class_, act)

    def _answered(self, read: Callable[[], Wish]) -> Answer:
        try:
            wanted = read()
            return answer(Gate(self._roots.house(), self._tools, notice=self._notice).implement(wanted))
        except ActorError as error:
            return error_answer(error)
        except Exception as error:  # noqa: BLE001 - the contract: a dict whatever happens
            said = f"this is a bug ({type(error).__name__}: {error})"
            return error_answer(ActorError(Code.BUG, said, hint="nothing landed; please report it"))

    def _tools(self, app: App) -> App:
        return replace(
            app,
            analyser=self._analyser or app.analyser,
            runner=self._runner or app.runner,
            construct=self._construct or app.construct,
        )


def _argv(named: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if named is None else (named,) if isinstance(named, str) else tuple(named)
