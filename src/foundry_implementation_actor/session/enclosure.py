"""What stands around a session: the sandbox that holds it, and its one way out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.run import Budget
from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.loopback import OWN
from foundry_implementation_actor.egress.meter import Meter
from foundry_implementation_actor.egress.model import Model, ModelDoor
from foundry_implementation_actor.egress.proxy import EgressProxy
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.sandbox.caches import cache_environment
from foundry_implementation_actor.sandbox.doors import Door, Doors, host_doors
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Network, Sandbox, View
from foundry_implementation_actor.session.pen import Pen, write_config
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.process import Child, Stop

_OPENS_WITHIN_S = 20.0


@dataclass(frozen=True)
class Places:
    """The places of one session: where it works, what of that it may change, and its own HOME and TMP.

    `tree` is seen whole; `writable` are directories that are there. `borrowed` is what the tree's git
    reads its objects from.
    """

    tree: Path
    writable: tuple[Path, ...]
    home: Path
    temporary: Path
    borrowed: Path


@dataclass(frozen=True)
class Enclosure:
    """How an actor holds its sessions.

    `hosts` are the hosts that a session may reach; `upstream` is how the actor itself gets there. `model`
    is reached at the actor, None when no session needs one. `hidden` are the actor's own places, such as its state.
    """

    sandbox: Sandbox
    hosts: Allowed
    upstream: Upstream
    model: Model | None
    hidden: tuple[Path, ...]

    @contextlib.contextmanager
    def around(
        self, places: Places, journal: Journal, pen: Pen | None = None, budget: Budget | None = None
    ) -> Iterator[Held]:
        """Hold one session in these places; what the sandbox cannot hold is recorded as `sandbox`.

        Args:
            places: where it works.
            journal: told of what is refused.
            pen: the gate that it reaches besides, when that is its only pen.
            budget: what it may spend on the model; None for no limit.

        Raises:
            ActorError: UNFIT when this host has no socket left for the way out.
        """
        journal.event("sandbox", sandbox=self.sandbox.name, gaps=[gap.name for gap in self.sandbox.gaps])
        view = View(
            places.writable, places.home, places.temporary, hidden=self.hidden, shown=(places.tree, places.borrowed)
        )
        meter = Meter(budget.prices, budget.cost_usd) if budget else Meter()
        model = ModelDoor(self.model, meter=meter) if self.model else None
        journal = journal.hiding(model.token) if model else journal
        # With everything open, the proxy only leads to the model.
        hosts, make_doors = (Allowed(), host_doors) if self.hosts.is_open else (self.hosts, self.sandbox.doors)
        with (
            make_doors(gate=pen is not None) as doors,
            EgressProxy(hosts, journal, self.upstream, model=model) as proxy,
        ):
            if self.hosts.is_open:
                view = replace(view, network=Network.OPEN)
            else:
                view = replace(view, network=Network.PROXIED, doors=doors)
            yield Held(self.sandbox, view, doors, proxy, model, meter, pen, journal, self._watched(places, pen))

    def _watched(self, places: Places, pen: Pen | None) -> tuple[Path, ...]:
        """Where a session can take room on disk: all of its tree when nothing holds it, or its gate writes there."""
        if pen is not None or self.sandbox.name == NoSandbox.name:
            return (places.tree, places.home, places.temporary)
        own = dict.fromkeys((*places.writable, places.home, places.temporary))
        return tuple(place for place in own if own.keys().isdisjoint(place.parents))


@dataclass(frozen=True)
class Held:
    """One session's enclosure, good for one program.

    `doors` are where the proxy and the pen are answered; `meter` counts what it asks of the model; `journal` is the
    one to record it in; `watched` are the directories in which what it takes on disk is found, none inside another.
    """

    sandbox: Sandbox
    view: View
    doors: Doors
    proxy: EgressProxy
    model: ModelDoor | None
    meter: Meter
    pen: Pen | None
    journal: Journal
    watched: tuple[Path, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program is to be told: where its caches are, and how it gets out."""
        told = cache_environment(self.view.home)
        return told | _proxies(self.doors.proxy) if self.view.doors else told

    @property
    def credentials(self) -> Mapping[str, str]:
        """What the engine is told of the model: where it is for this session, and what it logs in with there."""
        if self.model is None:
            return {}
        door = self.doors.proxy
        return {self.model.model.variable: self.model.token, "ANTHROPIC_BASE_URL": f"http://{door.address}:{door.port}"}

    def write_gate_file(self) -> Path | None:
        """Write the file in its HOME that tells it of its only pen; gives its place, None when it writes freely."""
        if self.pen is None or self.doors.gate is None:
            return None
        return write_config(self.view.home, self.pen, self.doors.gate)

    @contextlib.contextmanager
    def started(self, command: Command, stop: Stop | None) -> Iterator[Child]:
        """The running program; when the context is left, nothing of it lives.

        Raises:
            ActorError: UNFIT when it cannot be started, or the sandbox cannot be set up.
        """
        with self.sandbox.confine(command, self.view) as confined:
            child = Child(confined, stop)
        with child:
            self._answer()
            yield child

    def _answer(self) -> None:
        listeners = self.doors.listeners(_OPENS_WITHIN_S)
        self.proxy.serve(listeners.proxy)
        if self.pen is not None and listeners.gate is not None:
            self.pen.serve(listeners.gate)


def _proxies(door: Door) -> dict[str, str]:
    address = f"http://{door.address}:{door.port}"
    ways = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), address)
    return ways | dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(OWN))
