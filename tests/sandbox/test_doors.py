"""The ways out of a sandbox: sockets that the actor accepts on, and nothing else to connect to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.port import Network, Sandbox
from foundry_implementation_actor.system.process import Child, run_contained
from support.plain import Scene

ALL = pytest.mark.parametrize("sandbox", [Bubblewrap(), Landlock(), NoSandbox()], ids=lambda one: str(one.name))
_ASKS = """
import socket, sys
for place in sys.argv[1:]:
    address, _, port = place.rpartition(":")
    try:
        with socket.create_connection((address, int(port)), 2) as one:
            print(one.recv(64).decode())
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path.resolve())


@ALL
def test_the_actor_answers_on_each_way_out(scene: Scene, sandbox: Sandbox) -> None:
    with sandbox.doors(gate=True) as doors:
        assert doors.gate is not None
        places = [f"{door.address}:{door.port}" for door in doors.all]
        command = scene.command("python", "-I", "-c", _ASKS, *places)
        with sandbox.confine(command, scene.view(network=Network.PROXIED, doors=doors)) as confined:
            child = Child(confined)
        with child:
            listeners = doors.listeners(20.0)
            assert listeners.gate is not None
            with listeners.proxy, listeners.gate:
                for listener, word in ((listeners.proxy, b"proxy"), (listeners.gate, b"gate")):
                    listener.settimeout(20.0)
                    with listener.accept()[0] as one:
                        one.sendall(word)
            said = b""
            while (output := child.read(20.0)).chunk:
                said += output.chunk
    assert said == b"proxy\ngate\n"


@ALL
def test_without_a_gate_there_is_one_way_out(sandbox: Sandbox) -> None:
    with sandbox.doors() as doors:
        assert doors.gate is None
        assert doors.all == (doors.proxy,)


def test_a_command_that_ends_before_it_has_a_way_out_keeps_nobody_waiting(scene: Scene) -> None:
    sandbox = Bubblewrap()
    with sandbox.doors() as doors:
        command = scene.command("true")
        with sandbox.confine(command, scene.view(network=Network.PROXIED, doors=doors)) as confined:
            assert confined.confinement is not None
            nowhere = replace(confined.confinement, doors=(("192.0.2.1", 1),))
            done = run_contained(replace(confined, confinement=nowhere))
        assert done.code == 126
        with pytest.raises(ActorError, match="ended before") as caught:
            doors.listeners(20.0)
    assert caught.value.code is Code.UNFIT


def test_a_way_out_that_nobody_opens_is_waited_for_no_longer_than_asked() -> None:
    with Bubblewrap().doors() as doors:
        assert doors.inside is not None
        with doors.inside.dup(), pytest.raises(ActorError, match=r"within 0\.05 seconds"):
            doors.listeners(0.05)


@pytest.mark.parametrize("sandbox", [Bubblewrap(), Landlock()], ids=lambda one: one.name)
def test_the_doors_of_another_sandbox_are_a_bug(scene: Scene, sandbox: Sandbox) -> None:
    with pytest.raises(ActorError, match="needs the doors") as caught:
        scene.shell(sandbox, "true", network=Network.PROXIED)
    assert caught.value.code is Code.BUG


def test_with_a_way_out_a_commands_own_servers_are_reached_in_its_own_network(scene: Scene) -> None:
    sandbox = Bubblewrap()
    text = (
        "import socket; one = socket.create_server(('127.0.0.1', 0)); "
        "other = socket.create_connection(one.getsockname()); one.accept()[0].send(b'own'); print(other.recv(9))"
    )
    with sandbox.doors() as doors:
        done = scene.run(sandbox, "python", "-I", "-c", text, network=Network.PROXIED, doors=doors)
    assert done.text == "b'own'\n", done.errors
