"""What the settings say of sessions whose only pen is the gate, and how such a session finds its way there."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry_implementation_actor.actor.gated import gate_lacks, gate_root
from foundry_implementation_actor.actor.holding import session_network
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.gate import isolate
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from support.repos import SIDECAR

GATE = "gate: {root: stub/, writes: gate}\n"


def settings(place: Path, **variables: str) -> Settings:
    return Settings.from_env({"ACTOR_STATE": str(place), **variables})


def config(place: Path, sidecar: str) -> CapabilityConfig:
    (place / "actor-agentic-context.yaml").write_text(sidecar)
    return CapabilityConfig.load(place)


@pytest.mark.parametrize(
    ("sidecar", "writes", "root"),
    [(SIDECAR, "free", None), (SIDECAR + GATE, "free", "stub/"), (SIDECAR + GATE, "gate", "stub/")],
)
def test_the_sidecar_names_the_app(tmp_path: Path, sidecar: str, writes: str, root: str | None) -> None:
    assert gate_root(settings(tmp_path, SESSION_WRITES=writes), config(tmp_path, sidecar)) == root


def test_with_several_components_nobody_guesses_the_app(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has 2 components.*write `gate: \{root: <directory>, writes: gate\}`"):
        gate_root(settings(tmp_path, SESSION_WRITES="gate"), config(tmp_path, SIDECAR))


def test_a_session_with_an_open_network_does_not_ask_the_sites_proxy_for_its_gate(tmp_path: Path) -> None:
    proxied = settings(tmp_path, SESSION_HOSTS="*", http_proxy="http://site:3128", NO_PROXY="intern")
    told = session_network(proxied)
    assert (told["NO_PROXY"], told["no_proxy"]) == ("intern,localhost,127.0.0.1", "localhost,127.0.0.1")
    assert "NO_PROXY" not in session_network(settings(tmp_path, SESSION_HOSTS="*"))


def test_a_host_without_namespaces_is_fit_for_a_gated_session_when_landlock_holds_what_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated, capability = settings(tmp_path, SESSION_WRITES="gate"), config(tmp_path, SIDECAR + GATE)
    monkeypatch.setattr(isolate, "isolation_refusal", lambda: "no namespaces")
    assert list(gate_lacks(gated, capability)) == []
    monkeypatch.setattr(isolate, "holding_refusal", lambda: "no Landlock")
    [lack] = gate_lacks(gated, capability)
    assert "with nothing to hold it (no namespaces; no Landlock)" in lack.message
    assert list(gate_lacks(settings(tmp_path, SESSION_WRITES="gate", SANDBOX="none"), capability)) == []
