"""Everything that a run works with, as one value: the wiring fills it, the steps read it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foundry_implementation_actor.delivery.images.publish import Publisher
from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Budget, Cause, Door, SessionEnd
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.engines.port import Engine, SessionOrder
from foundry_implementation_actor.judges.boundary import ChangeLimits
from foundry_implementation_actor.session.budget import explain
from foundry_implementation_actor.session.drive import drive
from foundry_implementation_actor.session.enclosure import Enclosure, Places
from foundry_implementation_actor.session.pen import MakePen, Pen
from foundry_implementation_actor.system.files import writable
from foundry_implementation_actor.system.git import Git, Remote
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.process import Stop
from foundry_implementation_actor.workspace.checkout import Checkout
from foundry_implementation_actor.workspace.grounding import Fetcher
from foundry_implementation_actor.workspace.roots import open_roots

_RIGHT_HOLDS_S = 600.0


class PushRight:
    """Whether this actor's login has lately been seen to have the right to push.

    Asking the forge before each task would cost a round trip; a right that is lost in between shows
    at the push itself.
    """

    def __init__(self) -> None:
        self._proven_until = 0.0

    def prove(self) -> None:
        """The forge has just said yes."""
        self._proven_until = time.monotonic() + _RIGHT_HOLDS_S

    def is_proven(self) -> bool:
        """Whether it said yes in the last ten minutes."""
        return time.monotonic() < self._proven_until


@dataclass(frozen=True)
class Workshop:
    """One actor's means.

    `artifacts` is where work that was not pushed is kept; `environment` is what git and builders get
    of the host; `publisher` is None when images are off;
    `enclosure` finds how sessions are held on this host, and raises UNFIT when they cannot be;
    `make_pen` makes the gate that is an implementing session's only pen, of the app in `gate_root`, and is None when
    sessions write freely; `engine_lacks` gives what sessions cannot be started without; `finds_secret` says
    whether bytes hold a secret of the actor; `version` is this package's own.
    """

    capability: Capability
    remote: Remote
    state: Path
    artifacts: Path
    engine: Engine
    budgets: Mapping[Door, Budget]
    change_limits: ChangeLimits
    clone_timeout_s: float
    verify_timeout_s: float
    environment: Mapping[str, str]
    fetcher: Fetcher
    session_network: Mapping[str, str] = field(repr=False)
    publisher: Publisher | None
    enclosure: Callable[[], Enclosure]
    make_pen: MakePen | None
    gate_root: str
    engine_lacks: Callable[[], Sequence[ActorError]]
    finds_secret: Callable[[bytes], bool]
    journal: Journal
    stop: Stop
    push_right: PushRight
    version: str

    @property
    def git(self) -> Git:
        """Git with this host's environment; each use points it at a git directory of its own."""
        return Git(self.state, self.environment, self.clone_timeout_s, stop=self.stop)

    @property
    def path(self) -> str:
        """The PATH on which programs are found."""
        return self.environment["PATH"]

    def check_engine(self) -> None:
        """See that sessions can be started.

        Raises:
            ActorError: UNFIT with the first thing that is missing.
        """
        for missing in (*self.engine_lacks(), *self._sandbox_lacks()):
            raise missing

    def lacks(self) -> Iterator[ActorError]:
        """Everything that this host lacks for a run, as the run itself would say it."""
        yield from self.engine_lacks()
        yield from self._sandbox_lacks()
        if self.publisher is not None:
            yield from self.publisher.lacks()

    def _sandbox_lacks(self) -> Iterator[ActorError]:
        try:
            self.enclosure()
        except ActorError as error:
            yield error


class SessionStoppedError(ActorError):
    """A session that did not come to its own end, or a `verify` after it that left processes; `end` is how it ended."""

    def __init__(self, code: Code, message: str, end: SessionEnd, *, hint: str) -> None:
        self.end = end
        super().__init__(code, message, hint=hint)


@dataclass(frozen=True)
class Asked:
    """What one session is asked, and what it may spend.

    `system` is the system prompt that the framework made from the card. `attempt` is 1 for the first session of a
    run and counts on with each that is given the output of a red `verify`.
    """

    system: str
    prompt: str
    budget: Budget
    attempt: int = 1


def run_session(shop: Workshop, task: Task, checkout: Checkout, asked: Asked, pen: Pen | None = None) -> SessionEnd:
    """Drive one session in a prepared tree to its finished end; with a pen, it writes through that and in no other way.

    Raises:
        SessionStoppedError: STOPPED when it ran out of a budget, broke or was given up by the model's
            service; INTERRUPTED when the actor is stopping.
    """
    budget = asked.budget
    journal = shop.journal if pen is None else shop.journal.hiding(pen.token)
    places = _places(shop, task.door if pen is None else None, checkout)
    with pen or contextlib.nullcontext(), shop.enclosure().around(places, journal, pen, budget) as held:
        order = SessionOrder(
            door=task.door, task_id=task.task_id, system=asked.system, prompt=asked.prompt, tree=checkout.tree,
            home=checkout.home, temporary=checkout.temporary, turns=budget.turns, path=shop.path,
            credentials=held.credentials, surroundings={**shop.session_network, **held.environment},
            remediation=bool(task.remediation_context), cost_usd=budget.cost_usd, gate=held.write_gate_file(),
            attempt=asked.attempt,
        )  # fmt: skip
        end = drive(
            shop.engine, order, budget, held.journal, shop.stop,
            start=held.started, places=held.watched, meter=held.meter,
        )  # fmt: skip
    if not end.finished:
        code = Code.INTERRUPTED if end.cause is Cause.STOPPED else Code.STOPPED
        # What ran out is the run's whole budget, of which this session may have had what others left.
        said, hint = explain(task.door, shop.budgets[task.door], end)
        raise SessionStoppedError(code, shop.journal.redact(said), end, hint=hint)
    return end


def _places(shop: Workshop, door: Door | None, checkout: Checkout) -> Places:
    """A session that implements freely may change the roots, scratch and its own git directory; others nothing."""
    own = (*shop.capability.writes_only_under, *shop.capability.scratch)
    with writable(checkout.tree):
        places = (*open_roots(checkout.tree, own), checkout.git) if door is Door.IMPLEMENT else ()
    return Places(checkout.tree, places, checkout.home, checkout.temporary, checkout.base.objects)
