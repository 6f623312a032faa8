"""The peers as PyPI has them, in an environment of their own, call this actor as it is served and read what it gives.

Not driven, because each needs a model or a cluster: the sessions of the testing actor (its doors are played; what it
computes from our branch is its own), and what Kubernetes makes of a deployment (what it is asked for is looked at).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from foundry_implementation_actor import Settings
from support.peers import ORCHESTRATION, ROOT, TESTING, Cluster, Elsewhere, ask
from support.place import TOKEN, Place, write
from support.registry import LoopbackRegistry
from support.repos import CAPABILITY_FILES, SOURCE_REPO, Repo, git
from support.serving import Serving

BRANCH = "impl/TASK-014"
TASK = {
    "task_id": "TASK-014",
    "title": "Reject orders without a line",
    "definition_of_done": ["an order without lines is refused"],
}
EXPECTATIONS = [
    {"id": "E1", "statement": "an order without lines is answered with empty-order", "handle": "POST /orders"},
    {"id": "E2", "statement": "an order with lines costs what it did", "handle": "POST /orders"},
]
OVERLAY = "deployment/dev/k8s/overlays/ephemeral/kustomization.yaml"
FILES = {**CAPABILITY_FILES, f"backend/{OVERLAY}": "resources: []\n", f"stub/{OVERLAY}": "resources: []\n"}
AGREES = {
    "door": "assess-task",
    "steps": [
        {
            "answer": {
                "feasible": True,
                "objections": [],
                "commitments": [{"id": "E1", "commitment": "place() answers empty-order"}],
            }
        }
    ],
}
OBJECTS = {
    "door": "assess-task",
    "steps": [{"answer": {"feasible": False, "objections": [{"id": "E2", "why": "no price is kept anywhere"}]}}],
}
MENDS = {"door": "implement-task", "remediation": True, "steps": [write("backend/orders.py", "CODE = 'empty-order'\n")]}
WORKS = {
    "door": "implement-task",
    "steps": [write("backend/orders.py", "CODE = 'no-lines'\n"), write("stub/answer.json", "{}\n")],
}


def lay_sidecars(base: Path) -> dict[str, str]:
    """The sidecars of the two peers, each in a folder of its own: which folder is whose."""
    for name, text in (("orchestration", ORCHESTRATION), ("testing", TESTING)):
        (base / name).mkdir()
        (base / name / "actor-agentic-context.yaml").write_text(text)
    return {name: str(base / name) for name in ("orchestration", "testing")}


class Peers:
    """This actor, served on a forge of its own, the sidecars of the peers, and what stands in for the rest."""

    def __init__(self, base: Path, stack: ExitStack, assessing: dict[str, Any], **settings: str) -> None:
        self.cluster = Cluster(base / "cluster")
        self.base = base
        self.folders = lay_sidecars(base)
        if not shutil.which("buildah"):
            pytest.skip("no buildah; run `make test`, or `sh scripts/setup-images`")
        self.images = stack.enter_context(LoopbackRegistry(base / "registry"))
        self.registry = f"{self.images.host}/foundry"
        images = {
            "IMAGES": "on", "IMAGE_BUILDER": "buildah", "IMAGE_REGISTRY": self.registry, "REGISTRY_TLS": "off",
        }  # fmt: skip
        self.place = stack.enter_context(Place(base / "place", files=FILES, settings=images))
        environment = self.place.environment(assessing, MENDS, WORKS, **settings)
        self.actor = stack.enter_context(Serving(self.place.folder, environment))
        self.url = f"http://127.0.0.1:{self.actor.recorded('actor-started')[0]['port']}"
        test_image = f"{self.registry}/acme.parts/sup.007.wid/backend/tests:0.1.0-task-014-0000000"
        self.elsewhere = stack.enter_context(Elsewhere(EXPECTATIONS, test_image))

    def orchestrate(self, **payload: str) -> Any:
        """What the orchestrating actor answers to the task."""
        forge = self.place.server.url.replace("//", f"//x-access-token:{TOKEN}@")
        order = {
            "folder": self.folders["orchestration"],
            "payload": {**TASK, **payload},
            "github_api": f"{self.elsewhere.url}/api",
            "namespace_file": str(self.cluster.namespace_file),
            "settings": {
                "IMPLEMENTATION_URL": self.url, "TESTING_URL": self.elsewhere.url, "IMAGE_REGISTRY": self.registry,
            },
        }  # fmt: skip
        redirect = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{forge}/.insteadOf",
            "GIT_CONFIG_VALUE_0": f"https://x-access-token:{TOKEN}@github.com/",
        }
        path = f"{self.cluster.bin}:{os.environ['PATH']}"
        return ask("orchestrate", order, {"GITHUB_TOKEN": TOKEN, "PATH": path, **redirect})

    def calls(self, *calls: tuple[str, Any]) -> Any:
        """What the orchestrating actor's client makes of the answers of these doors."""
        return ask("calls", {"url": self.url, "calls": calls})

    @property
    def version(self) -> str:
        """What the branch's tip is versioned as."""
        return f"0.1.0-task-014-{self.place.repo.git('rev-parse', '--short=7', BRANCH)}"

    @property
    def ref(self) -> str:
        """The image of the backend at the branch's tip."""
        return f"{self.registry}/acme.parts/sup.007.wid/backend:{self.version}"

    def recomputed(self) -> str:
        """The ref that the testing actor finds for the backend in a clone of the branch."""
        clone = self.base / "clone"
        git(self.base, "clone", "--quiet", "--branch", BRANCH, str(self.place.repo.path), str(clone))
        order = {"testing": self.folders["testing"], "clone": str(clone), "component": "backend"}
        return str(ask("recompute", {**order, "task_id": "TASK-014", "registry": self.registry}))


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(tmp_path, stack, AGREES)


def test_the_orchestrating_actor_takes_a_task_through_both_doors_and_a_red_test_to_its_pull_request(
    peers: Peers,
) -> None:
    done = peers.orchestrate()
    answer = done["answer"]
    assert answer["accepted"] is True, answer
    assert (answer["branch"], answer["attempts"], answer["verdict"]) == (BRANCH, 2, "2/2 criteria passed")
    agreed = [(one["id"], one.get("commitments")) for one in answer["acceptance_surface"]]
    assert agreed == [("E1", [{"id": "E1", "commitment": "place() answers empty-order"}]), ("E2", None)]
    assert [record["door"] for record in peers.actor.recorded("call")] == [
        "assess-task", "implement-task", "implement-task",
    ]  # fmt: skip
    assert {record["correlation_id"] for record in peers.actor.recorded("session", "start")} == {done["trace"]}
    assert Repo(peers.place.repo.path).read("backend/orders.py", BRANCH) == "CODE = 'empty-order'"

    assert peers.recomputed() == peers.ref
    pulled = [yaml.safe_load(text)["images"][0] for text in peers.cluster.deployed]
    for component, times in (("backend", 1), ("stub", 2)):  # the remediation is deployed with the stub of before
        mine = [image for image in pulled if image["name"] == peers.place.config.image_name(component)]
        assert {image["newName"] for image in mine} == {f"{peers.registry}/acme.parts/sup.007.wid/{component}"}
        there = peers.images.tags(f"foundry/acme.parts/sup.007.wid/{component}")
        assert sorted(image["newTag"] for image in mine) == sorted(there * times)
    assert peers.version in [image["newTag"] for image in pulled]
    [request, _twin] = peers.elsewhere.bodies("/pulls")
    assert request["head"] == BRANCH
    assert f"`backend`: `{peers.version}`" in request["body"]


def test_an_objection_of_ours_stops_its_round_and_reaches_a_person_as_an_issue(tmp_path: Path) -> None:
    with ExitStack() as stack:
        peers = Peers(tmp_path, stack, OBJECTS)
        answer = peers.orchestrate(report_to="acme-lab/backlog")["answer"]
        assert (answer["accepted"], answer["stage"], answer["attempts"]) == (False, "round-0", 0)
        assert answer["objections"] == [{"id": "E2", "why": "no price is kept anywhere"}]
        assert answer["issue_url"].startswith("https://forge.example/acme-lab/backlog/issues/")
        [issue] = peers.elsewhere.bodies("/issues")
        assert "**objection** — raised by implementation" in issue["body"]
        assert "on `E2`: " in issue["body"]
        assert "no price is kept anywhere" in issue["body"]
        assert [record["door"] for record in peers.actor.recorded("call")] == ["assess-task"]


def test_an_answer_without_images_stops_its_round(tmp_path: Path) -> None:
    with ExitStack() as stack:
        peers = Peers(tmp_path, stack, AGREES, IMAGES="off", IMAGE_BUILDER="auto")
        answer = peers.orchestrate()["answer"]
    assert (answer["accepted"], answer["stage"], answer["branch"]) == (False, "implementation", BRANCH)
    assert "images was empty" in answer["because"]


def test_its_client_tells_an_answer_from_a_refusal_and_from_what_the_membrane_refused(peers: Peers) -> None:
    undeclared = {**TASK, "priority": "high"}
    accepted, again, refused, membrane, missing, nowhere = peers.calls(
        ("implement-task", TASK),
        ("implement-task", TASK),
        ("implement-task", {**TASK, "task_id": "../014"}),
        ("implement-task", undeclared),
        ("assess-task", TASK),
        ("test-task", TASK),
    )
    images = [peers.ref, peers.ref.replace("/backend:", "/stub:")]
    assert accepted == again == {"reply": {"accepted": True, "branch": BRANCH, "images": images}}
    assert len(peers.actor.recorded("session", "start")) == 1
    assert refused["reply"]["accepted"] is False
    assert "task_id" in refused["reply"]["because"]
    assert [one["status"] for one in (membrane, missing, nowhere)] == [400, 400, 404]
    assert "priority" in membrane["error"]
    assert "acceptance_surface" in missing["error"]


def test_the_frameworks_own_mailbox_delivers_to_a_door_and_gets_its_answer(peers: Peers) -> None:
    order = {"to": "the-actor", "url": peers.url, "verb": "query", "door": "assess-task"}
    surface = [{"id": "E1", "expectation": "it works"}]
    answered = ask("deliver", {**order, "payload": {**TASK, "acceptance_surface": surface}})
    assert answered["reply"]["feasible"] is True
    refused = ask("deliver", {**order, "payload": TASK})
    assert "refused this call (400)" in refused["error"]


ROWS = [
    (registry, component, version)
    for registry in ("registry.example.com", "registry.example.com:5000", "127.0.0.1:5000/a/b.c")
    for component, version in (("backend", "0.1.0-task-014-28c22a0"), ("stub", "12.0.3-t.1_x-y-0a1b2c3"))
]


def test_every_ref_of_ours_is_read_back_as_its_component_and_version(tmp_path: Path) -> None:
    with Place(tmp_path / "place") as place:
        config = place.config
    refs = [config.image_ref(*row) for row in ROWS]
    theirs = ask(
        "names", {**lay_sidecars(tmp_path), "rows": [(*row, ref) for row, ref in zip(ROWS, refs, strict=True)]}
    )
    assert theirs["actor"] == config.actor_name
    assert theirs["repository"] == [SOURCE_REPO] * 2
    assert theirs["path"] == [config.capability_path] * 2
    assert theirs["image"] == [config.image_name("backend")] * 2
    for (_, component, version), ref, read in zip(ROWS, refs, theirs["refs"], strict=True):
        assert read == {"parsed": {component: version}, "as_tests": {}, "pulled": ref, "recomputed": ref}


@pytest.mark.parametrize("version", ["latest", "28c22a0", "^0.1.0"])
def test_a_product_finds_the_tag_of_a_task_by_its_feature_name(version: str) -> None:
    ours = "0.1.0-task-014-28c22a0"
    order = {"name": "backend", "feature": "task-014", "version": version}
    assert ask("resolve", {**order, "tags": ["0.1.0-task-015-1111111", ours, "0.1.0"]}) == ours


def test_its_client_waits_longer_than_a_session_and_what_comes_before_it_may_take() -> None:
    waits, ours = ask("timeouts", {}), Settings.from_env({})
    before = ours.clone_timeout_s + ours.fetch_timeout_s
    assert waits["assess-task"] > ours.assess_timeout_s + before
    assert waits["implement-task"] > ours.session_timeout_s + before
    told = (ROOT / "docs" / "three-amigos.md").read_text().partition("With the published peers")[2]
    taken = (ours.assess_timeout_s + before, ours.session_timeout_s + before)
    assert {f"{seconds:,}" for seconds in (*waits.values(), *taken)} <= set(re.findall(r"[\d,]+", told))
