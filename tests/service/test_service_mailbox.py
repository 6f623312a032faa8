"""The mailbox: one actor served, and peers asked over a real connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from papeete_actor_synchronous_messaging.actor import Actor
from papeete_actor_synchronous_messaging.mailbox import DeliveryError, Mailbox
from served import Judge, served, write_cards

from foundry_implementation_actor.service.host import listen
from foundry_implementation_actor.service.mailbox import AsgiMailbox
from foundry_implementation_actor.service.trace import correlation_of, traceparent
from foundry_implementation_actor.system.journal import CORRELATION

TASK: Any = {"task_id": "T-1"}


def sender(folder: Path, **peers: str) -> Actor:
    mailbox = AsgiMailbox({name.replace("_", "-"): url for name, url in peers.items()})
    return Actor.from_card(write_cards(folder), mailbox=mailbox, engines={"judge": Judge()})


def test_it_is_the_frameworks_mailbox_port() -> None:
    assert isinstance(AsgiMailbox(), Mailbox)


def test_a_request_and_a_query_reach_a_peer_and_bring_its_answer(tmp_path: Path) -> None:
    with served(tmp_path) as peer:
        actor = sender(tmp_path, Thing_maker=f"http://127.0.0.1:{peer.port}/")
        assert actor.request(to="Thing-maker", action="make", **TASK) == {"made": True}
        assert actor.query(to="Thing-maker", query="look", **TASK) == {"seen": TASK, "by": "Thing-maker"}


def test_the_trace_goes_on_to_the_peer(tmp_path: Path) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with served(tmp_path) as peer:
        actor = sender(tmp_path, other=f"http://127.0.0.1:{peer.port}")
        token = CORRELATION.set(trace)
        try:
            actor.request(to="other", action="make", **TASK)
        finally:
            CORRELATION.reset(token)
        assert peer.events("call")[0]["correlation_id"] == trace


def test_a_peers_refusal_is_a_delivery_error_in_its_words(tmp_path: Path) -> None:
    with served(tmp_path) as peer:
        actor = sender(tmp_path, other=f"http://127.0.0.1:{peer.port}")
        with pytest.raises(DeliveryError, match=r"other answered make with HTTP 400: .*'x' is not declared"):
            actor.request(to="other", action="make", x=1)
        with pytest.raises(DeliveryError, match="HTTP 404: there is nothing at /a/b"):
            actor.request(to="other", action="a/b")


def test_a_peer_that_does_not_answer_is_a_delivery_error(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as nobody:
        port = nobody.getsockname()[1]
    actor = sender(tmp_path, other=f"http://127.0.0.1:{port}", bad="ftp://x")
    with pytest.raises(DeliveryError, match=f"other cannot be reached at http://127.0.0.1:{port}: .*refused"):
        actor.request(to="other", action="make")
    with pytest.raises(DeliveryError, match="starts with http:// or https://"):
        actor.request(to="bad", action="make")


def test_a_peer_that_is_not_listed_is_looked_for_by_its_name() -> None:
    mailbox = AsgiMailbox({"near": "http://127.0.0.1:1"})
    assert mailbox.address("ACME.Far-implementation") == "http://acme.far-implementation:8080"
    assert mailbox.address("near") == "http://127.0.0.1:1"


def test_a_second_actor_is_refused(tmp_path: Path) -> None:
    actor = sender(tmp_path)
    with pytest.raises(DeliveryError, match="served here already"):
        actor.mailbox.register(actor)
    with pytest.raises(DeliveryError, match="no actor has registered"):
        _ = AsgiMailbox().actor


def test_a_trace_header_of_ours_is_read_back() -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert correlation_of([traceparent(trace)]) == trace
    for unusable in ("", "x" * 32, "0" * 32):
        assert correlation_of([traceparent(unusable)]) != unusable
