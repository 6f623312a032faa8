"""The framework's mailbox port over HTTP: one local actor that is served, and peers that are asked."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from papeete_actor_synchronous_messaging.actor import Actor
from papeete_actor_synchronous_messaging.mailbox import DeliveryError

from foundry_implementation_actor.service.trace import traceparent
from foundry_implementation_actor.system.journal import CORRELATION

PEER_PORT = 8080

_LARGEST_ANSWER = 8 * 1024 * 1024


class AsgiMailbox:
    """Serves the actor that registers, and delivers its calls to peers.

    Args:
        peers: the base URL of a peer by its actor name; another peer is looked for at
            `http://<name in lower case>:8080`, the name of its service in a cluster.
        timeout_s: seconds to wait for a peer's answer; a peer may work for half an hour.
    """

    def __init__(self, peers: Mapping[str, str] | None = None, *, timeout_s: float = 3600) -> None:
        self._peers = dict(peers or {})
        self._timeout_s = timeout_s
        self._actor: Actor | None = None

    @property
    def actor(self) -> Actor:
        """The actor that is served here.

        Raises:
            DeliveryError: none has registered yet.
        """
        if self._actor is None:
            raise DeliveryError("no actor has registered at this mailbox")
        return self._actor

    def register(self, actor: Actor) -> None:
        """Serve this actor.

        Raises:
            DeliveryError: another one is served already; one process has one address.
        """
        if self._actor is not None:
            raise DeliveryError(f"{self._actor.name} is served here already, so {actor.name} cannot be")
        self._actor = actor

    def address(self, peer: str) -> str:
        """The base URL at which a peer of this name is asked."""
        return self._peers.get(peer, f"http://{peer.lower()}:{PEER_PORT}")

    def deliver(self, *, from_: str, to: str, verb: str, door: str, payload: dict[str, Any]) -> Any:
        """POST one call to a peer's door and return the completion object.

        `verb` is not sent: the door's id says it.

        Raises:
            DeliveryError: the peer cannot be reached, answered with an error, or with no JSON.
        """
        del verb
        base = self.address(to)
        body = json.dumps({"from": from_, "payload": payload}).encode()
        try:
            status, raw = self._post(base, door, body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DeliveryError(f"{to} cannot be reached at {base}: {error or type(error).__name__}") from error
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise DeliveryError(f"{to} answered {door} with HTTP {status} and no JSON") from error
        if status != http.client.OK:
            said = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise DeliveryError(f"{to} answered {door} with HTTP {status}: {said}")
        return answer

    def _post(self, base: str, door: str, body: bytes) -> tuple[int, bytes]:
        url = urlsplit(base)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if url.scheme not in kinds or not url.hostname:
            raise ValueError("a peer's address starts with http:// or https://")
        headers = {"content-type": "application/json", "traceparent": traceparent(CORRELATION.get())}
        connection = kinds[url.scheme](url.hostname, url.port, timeout=self._timeout_s)
        try:
            connection.request("POST", f"{url.path.rstrip('/')}/{quote(door, safe='')}", body, headers)
            response = connection.getresponse()
            raw = response.read(_LARGEST_ANSWER + 1)
        finally:
            connection.close()
        if len(raw) > _LARGEST_ANSWER:
            raise ValueError(f"its answer is larger than {_LARGEST_ANSWER:,} bytes")
        return response.status, raw
