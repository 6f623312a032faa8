"""Runs the code of the published peers, in their environment: one order as JSON on stdin, one answer on stdout.

It is no test and is never imported here: `test_peers.py` starts it with the Python of `.venv/peers`. What it calls is
theirs as it was published. Three addresses are fixed in their code and stand for what is not on loopback; these are
pointed at the test's own stand-ins: GitHub's API, and the file in which a Pod finds its namespace (GitHub as a git
server is redirected by git's own configuration).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import foundry_task_orchestration_actor as orchestration  # type: ignore[import-not-found]  # in .venv/peers only
import foundry_testing_actor.config as testing  # type: ignore[import-not-found]  # in .venv/peers only
from foundry_task_orchestration_actor import issues, peers
from foundry_testing_actor import engine as tester
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found]  # in .venv/peers only
from papeete_actor_synchronous_messaging.actor import Actor
from papeete_actor_synchronous_messaging.mailbox import InProcessMailbox
from papeete_actor_synchronous_messaging_http.mailbox import DeliveryError, HttpMailbox  # type: ignore[import-not-found]  # in .venv/peers only
from papeete_deploy import deploy as product_deploy  # type: ignore[import-not-found]  # in .venv/peers only

Order = dict[str, Any]

TIMEOUT_S = 60.0


def orchestrate(order: Order) -> Order:
    """Have the orchestrating actor answer its own door: it is embedded as its README says."""
    orchestration.pulls.GITHUB_API = issues.GITHUB_API = order["github_api"]
    orchestration.deploy.NAMESPACE_FILE = Path(order["namespace_file"])
    config = orchestration.CapabilityConfig.load(order["folder"])
    orchestration.render_cards(config, order["folder"])
    settings = orchestration.Settings.from_env(order["settings"])
    actions = {"orchestrate-task": orchestration.make_orchestrate_task(config, settings)}
    actor = Actor.from_card(order["folder"], mailbox=InProcessMailbox(), actions=actions)
    with trace.get_tracer("test").start_as_current_span("the caller's") as span:
        answer = actor.receive(verb="request", door="orchestrate-task", payload=order["payload"], from_="planner")
        return {"answer": answer, "trace": format(span.get_span_context().trace_id, "032x")}


def calls(order: Order) -> list[Order]:
    """Put payloads to doors, as its client does it."""
    return [_call(order["url"], door, payload) for door, payload in order["calls"]]


def _call(url: str, door: str, payload: Order) -> Order:
    try:
        return {"reply": peers.call_door(url, door, payload, "planner", timeout=TIMEOUT_S)}
    except peers.PeerError as error:
        return {"status": error.status, "error": str(error)}


def deliver(order: Order) -> Order:
    """Put one payload to a door through the framework's own HTTP binding."""
    mailbox = HttpMailbox(peers={order["to"]: order["url"]})
    verb = order["verb"]
    try:
        return {
            "reply": mailbox.deliver(
                from_="planner", to=order["to"], verb=verb, door=order["door"], payload=order["payload"]
            )
        }
    except DeliveryError as error:
        return {"error": str(error)}


def names(order: Order) -> Order:
    """What both peers derive from the same capability, and what the orchestrating one reads out of refs."""
    mine = orchestration.CapabilityConfig.load(order["orchestration"])
    theirs = testing.CapabilityConfig.load(order["testing"])
    implementation = mine.implementation
    return {
        "actor": implementation.actor_name,
        "repository": [implementation.repo, theirs.implementation_repo],
        "path": [mine.capability_path, theirs.capability_path],
        "image": [mine.image_name("backend"), theirs.image_name("backend")],
        "refs": [_read(mine, theirs, *row) for row in order["rows"]],
    }


def _read(mine: Any, theirs: Any, registry: str, component: str, version: str, ref: str) -> Order:
    return {
        "parsed": mine.parse_images([ref]),
        "as_tests": mine.parse_images([ref], test=True),
        "pulled": f"{mine.image_repository(registry, component)}:{version}",
        "recomputed": theirs.image_ref(registry, component, version),
    }


def recompute(order: Order) -> str:
    """The ref that the testing actor expects of a branch: it computes the version itself, in its own clone."""
    engine = SimpleNamespace(config=testing.CapabilityConfig.load(order["testing"]))
    clone, component = Path(order["clone"]), order["component"]
    ref: str = tester.ClaudeCodeTesterEngine._resolve_image(
        engine, clone, component, order["task_id"], order["registry"]
    )
    return ref


def resolve(order: Order) -> str:
    """The tag that papeete-deploy takes for a query, out of the tags of a registry."""
    registry = SimpleNamespace(list_tags=lambda _: order["tags"])
    tag: str = product_deploy.resolve_one(registry, order["name"], "feature", order["version"], order["feature"])
    return tag


def timeouts(_: Order) -> Order:
    """How long its client waits for the two doors, by default, in seconds."""
    settings = orchestration.Settings()
    return {"assess-task": settings.assess_timeout_s, "implement-task": settings.door_timeout_s}


DONE = {one.__name__: one for one in (orchestrate, calls, deliver, names, recompute, resolve, timeouts)}

if __name__ == "__main__":
    trace.set_tracer_provider(TracerProvider())
    json.dump(DONE[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
