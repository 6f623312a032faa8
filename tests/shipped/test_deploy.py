"""The manifests under `deploy/`: what Kubernetes' own schemas say, and what no schema checks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from foundry_implementation_actor.actor.settings import VARIABLES, Settings

BASE = Path(__file__).parents[2] / "deploy" / "base"
README = BASE.parent / "README.md"
KUBERNETES = ("1.30", "1.37")
KINDS = {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"}

Resource = dict[str, Any]


def kustomization() -> Resource:
    loaded: Resource = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    return loaded


def overlay() -> Resource:
    """The overlay that the README shows."""
    [text] = re.findall(r"^   ```yaml\n(.*?)^   ```$", README.read_text(), re.MULTILINE | re.DOTALL)
    loaded: Resource = yaml.safe_load(text)
    return loaded


def resolved() -> dict[str, Resource]:
    """What kustomize makes of the base and of the overlay on it, by kind."""
    base, own = kustomization(), overlay()
    assert "images" not in base, "an overlay would have to call the image by its new name"
    assert not {"labels", "commonLabels"} & {*base, *own}, "kustomize would put them into whatever selects anything"
    resources = {}
    for name in base["resources"]:
        resource = yaml.safe_load((BASE / name).read_text())
        resource["metadata"]["namespace"] = own["namespace"]
        resources[resource["kind"]] = resource
    _patch(resources["Deployment"], own)
    return resources


def _patch(deployment: Resource, own: Resource) -> None:
    """The image by its name, and the patch: lists of `containers` and `env` are merged by `name`."""
    [image], [patch] = own["images"], own["patches"]
    wanted = yaml.safe_load(patch["patch"])
    assert (wanted["kind"], wanted["metadata"]["name"]) == ("Deployment", deployment["metadata"]["name"])
    [container], [changed] = _pod(deployment)["containers"], _pod(wanted)["containers"]
    assert (container["image"], container["name"]) == (image["name"], changed["name"])
    container["image"] = f"{image['newName']}:{image['newTag']}"
    merged = {entry["name"]: entry for entry in [*container["env"], *changed["env"]]}
    assert len(merged) == len(container["env"]), "the overlay sets a variable that the base has not"
    container["env"] = list(merged.values())


def _pod(resource: Resource) -> Resource:
    pod: Resource = resource.get("spec", {}).get("template", {}).get("spec", {})
    return pod


def pod() -> Resource:
    return _pod(resolved()["Deployment"])


def container() -> Resource:
    [only] = pod()["containers"]
    found: Resource = only
    return found


def test_every_manifest_is_listed_and_there_is_one_of_each_kind() -> None:
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization()["resources"]) == files
    assert set(resolved()) == KINDS
    assert len(files) == len(KINDS)


@pytest.mark.parametrize("release", KUBERNETES)
def test_every_manifest_keeps_kubernetes_schema_with_no_unknown_key(release: str, tmp_path: Path) -> None:
    for kind, resource in resolved().items():
        (tmp_path / f"{kind}.yaml").write_text(yaml.safe_dump(resource))
    done = _checked(release, *sorted(tmp_path.iterdir()))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_check_sees_a_wrong_key(tmp_path: Path) -> None:
    wrong = resolved()["Deployment"]
    wrong["spec"]["template"]["spec"]["securityContext"]["runAsNoneRoot"] = True
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    done = _checked(KUBERNETES[-1], tmp_path / "wrong.yaml")
    assert done.returncode != 0
    assert "runAsNoneRoot" in done.stdout + done.stderr


def _checked(release: str, *files: Path) -> subprocess.CompletedProcess[str]:
    checker = Path(sys.executable).with_name("kubernetes-validate")
    return subprocess.run(
        [checker, "--strict", "--kubernetes-version", release, *files], capture_output=True, text=True, check=False
    )


def test_the_pod_meets_the_restricted_standard() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & pod().keys()
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    allowed = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    assert {key for volume in pod()["volumes"] for key in volume} - {"name"} <= allowed
    assert not any("hostPort" in port for port in container()["ports"])


def test_the_pod_runs_as_the_user_of_the_image_and_speaks_to_no_cluster() -> None:
    assert "USER 10001:10001" in (BASE.parents[1] / "docker" / "Dockerfile").read_text()
    wanted = {"runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001, "runAsNonRoot": True}
    assert wanted.items() <= pod()["securityContext"].items()
    assert pod()["automountServiceAccountToken"] is False
    assert resolved()["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod()["serviceAccountName"] == resolved()["ServiceAccount"]["metadata"]["name"]


def test_the_writable_places_are_those_that_the_image_writes() -> None:
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"] if not mount.get("readOnly")}
    assert mounts == {"/tmp", "/var/lib/actor"}
    assert "ACTOR_STATE=/var/lib/actor" in (BASE.parents[1] / "docker" / "Dockerfile").read_text()
    named = {mount["name"] for mount in container()["volumeMounts"]}
    assert named == {volume["name"] for volume in pod()["volumes"]}


def test_every_secret_is_a_reference_and_every_variable_is_one_of_the_actor() -> None:
    known = {variable.name: variable for variable in VARIABLES}
    for entry in container()["env"]:
        assert entry["name"] in known
        assert ("secretKeyRef" in entry.get("valueFrom", {})) == known[entry["name"]].secret
    plain = {entry["name"]: entry["value"] for entry in container()["env"] if "value" in entry}
    assert Settings.from_env({**plain, "HOME": "/tmp"}).images


def test_what_the_actor_may_use_fits_into_what_the_pod_has() -> None:
    plain = {entry["name"]: int(entry["value"]) for entry in container()["env"] if entry.get("value", "").isdigit()}
    gib = {"6Gi": 6 << 30, "8Gi": 8 << 30, "12Gi": 12 << 30}
    limits = container()["resources"]["limits"]
    assert plain["MAX_SESSIONS"] * plain["MAX_MEMORY_BYTES"] < gib[limits["memory"]]
    [state] = [volume for volume in pod()["volumes"] if volume["name"] == "state"]
    assert plain["MAX_SESSIONS"] * plain["MAX_DISK_BYTES"] < gib[state["emptyDir"]["sizeLimit"]]
    assert gib[state["emptyDir"]["sizeLimit"]] < gib[limits["ephemeral-storage"]]
    assert pod()["terminationGracePeriodSeconds"] > plain["SHUTDOWN_GRACE_S"]


def test_probes_service_and_policy_name_the_port_that_serves_health() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {"http": Settings.from_env({"HOME": "/tmp"}).port}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container()[probe]["httpGet"] == {"path": "/health", "port": "http"}
    assert [port["targetPort"] for port in resolved()["Service"]["spec"]["ports"]] == ["http"]
    assert [rule["ports"][0]["port"] for rule in resolved()["NetworkPolicy"]["spec"]["ingress"]] == ["http"]


def test_only_the_pods_of_the_deployment_are_selected() -> None:
    labels = resolved()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = (
        resolved()["Deployment"]["spec"]["selector"]["matchLabels"],
        resolved()["Service"]["spec"]["selector"],
        resolved()["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        resolved()["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    )
    assert all(selector == labels for selector in selectors)
    [rule] = resolved()["NetworkPolicy"]["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"foundry.acme.example/peer": "true"}}}]


def test_the_overlay_that_is_shown_lies_beside_the_base_and_replaces_what_is_acmes() -> None:
    [base] = overlay()["resources"]
    [folder] = re.findall(r"kubectl apply -k (\S+)`", README.read_text())
    assert (README.parents[1] / folder / base).resolve() == BASE
    assert f"`{folder}/kustomization.yaml`" in README.read_text()
    assert "acme" not in yaml.safe_dump(resolved()["Deployment"])


def test_the_rule_that_waits_as_a_comment_is_one(tmp_path: Path) -> None:
    text = (BASE / "networkpolicy.yaml").read_text()
    opened = re.sub(r"^    # (- to:|    ?.*|  ports:)$", r"    \1", text, flags=re.MULTILINE)
    policy = yaml.safe_load(opened)
    assert len(policy["spec"]["egress"]) == len(yaml.safe_load(text)["spec"]["egress"]) + 1
    (tmp_path / "policy.yaml").write_text(opened)
    done = _checked(KUBERNETES[-1], tmp_path / "policy.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_is_a_fixed_version_and_there_is_one_writer_of_the_state() -> None:
    assert container()["image"].rpartition(":")[2] not in {"", "latest"}
    deployment = resolved()["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
