"""`serve` as an operator runs it: one process, a sidecar, the environment, a signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Service

from foundry_implementation_actor.definition.render import render_cards
from foundry_implementation_actor.domain.error import ConfigError, ServeError, SettingsError
from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.host import listen
from foundry_implementation_actor.service.serve import serve
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.system.install import install
from support.registry import LoopbackRegistry
from support.repos import SIDECAR

SCRIPT = """
script: foundry-implementation-actor/script/v1
sessions:
  - steps: [{say: done}]
"""
TOKEN = "ghp_thatnobodymaysee0123456789"
SERVE = "import sys; from foundry_implementation_actor import serve; serve(sys.argv[1], port=0)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "capability"
    place.mkdir()
    (place / "actor-agentic-context.yaml").write_text(SIDECAR)
    (place / "play.yaml").write_text(SCRIPT)
    return place


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "TMPDIR": str(folder.parent),
        "HOST": "127.0.0.1",
        "GIT_BASE_URL": (folder.parent / "forge").as_uri(),
        "GITHUB_TOKEN": TOKEN,
        "IMAGES": "off",
        "SESSION_ENGINE": "scripted",
        "SESSION_SCRIPT": str(folder / "play.yaml"),
        "MAX_TURNS": "7",
        **more,
    }


@contextlib.contextmanager
def serving(folder: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any], Service]]:
    argv = [sys.executable, "-c", SERVE, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=environment(folder, **settings), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout
            started = json.loads(process.stdout.readline() or (process.stderr and process.stderr.read()) or "")
            yield process, started, Service(started["port"], [], Calls(), lambda: None)
        finally:
            process.kill()


def test_serve_starts_answers_and_ends(folder: Path) -> None:
    with serving(folder) as (process, started, service):
        assert started["step"] == "actor-started"
        assert started["actor"] == "ACME.PARTS.CAP.SUP.007.WID-implementation"
        assert (started["max_turns"], started["assess_timeout_s"]) == (7, 600)
        assert (started["session_engine"], started["model_credential"]) == ("scripted", None)
        assert (started["image_builder"], started["image_registry"], started["build_network"]) == ("none", None, False)
        assert started["versions"]["foundry-implementation-actor"]
        assert service.send("GET", "/health").json == {"status": "ok"}
        payload = {"task_id": "../../x", "title": "t", "definition_of_done": ["d"]}
        answer = service.call("implement-task", payload)
        assert (answer.status, answer.json["accepted"]) == (200, False)
        refused = service.call("assess-task", {"task_id": "T-1"})
        assert refused.status == 400
        assert "missing required field 'title'" in refused.error
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout
        assert process.stderr
        records = process.stdout.read()
        assert process.stderr.read() == ""
    assert [json.loads(line)["step"] for line in records.splitlines()][-2:] == ["actor-stopping", "actor-stopped"]
    assert TOKEN not in records
    assert not list(folder.parent.glob("*-cards-*"))


def not_fit(process: subprocess.Popen[str], count: int) -> list[str]:
    """What the next records of a service say that it lacks."""
    assert process.stdout
    records = [json.loads(process.stdout.readline()) for _ in range(count)]
    assert {(record["step"], record["level"]) for record in records} == {("not-fit", "warn")}
    return [record["text"] for record in records]


def test_a_service_that_can_do_no_run_starts_and_names_each_thing_that_is_missing(folder: Path) -> None:
    login = "set CLAUDE_CODE_OAUTH_TOKEN (from: claude setup-token), or ANTHROPIC_API_KEY to be billed by use"
    nothing = {"SESSION_ENGINE": "claude-code", "IMAGES": "on", "IMAGE_BUILDER": "buildctl"}
    nothing |= {"PATH": "/usr/bin:/bin"}
    with serving(folder, **nothing) as (process, started, service):
        assert started["step"] == "actor-started"
        assert not_fit(process, 4) == [
            "the program 'claude' was not found; install it with: npm install -g @anthropic-ai/claude-code",
            f"there is no login for the model; {login}",
            "BUILDKIT_HOST is not set; set it to the BuildKit daemon, or run with IMAGE_BUILDER=none",
            "IMAGE_REGISTRY is not set; set it to host[:port][/path], or run with IMAGE_BUILDER=none",
        ]
        assert service.send("GET", "/health").json == {"status": "ok"}


def test_a_builder_that_does_not_answer_is_missing_and_its_silence_keeps_nobody_waiting(
    folder: Path, tmp_path: Path
) -> None:
    program, waits = folder / "buildctl", folder / "waits"
    os.mkfifo(waits)
    program.write_text(f"#!/bin/sh\nread word < {waits}\necho no daemon $GITHUB_TOKEN >&2\nexit 1\n")
    program.chmod(0o755)
    images = {"IMAGES": "on", "REGISTRY_TLS": "off", "BUILDKIT_HOST": f"tcp://{TOKEN}"}
    path = f"{folder}:{os.environ['PATH']}"
    with (
        LoopbackRegistry(tmp_path / "registry") as registry,
        serving(folder, **images, IMAGE_REGISTRY=registry.host, PATH=path) as (process, _started, service),
    ):
        assert service.send("GET", "/health").json == {"status": "ok"}
        waits.write_text("on\n")
        assert not_fit(process, 1) == ["tcp://***: the BuildKit daemon does not answer: no daemon; check BUILDKIT_HOST"]


def test_a_served_process_shows_no_secret_in_its_environment(folder: Path) -> None:
    with serving(folder) as (process, _started, _service):
        assert TOKEN.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_service_that_is_killed_leaves_no_cards(folder: Path) -> None:
    with serving(folder) as (process, _started, service):
        assert service.send("GET", "/health").json == {"status": "ok"}
        process.kill()
        process.wait(60)
        assert not list(folder.parent.glob("*-cards-*"))


def test_a_port_in_use_ends_serve_with_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port} is already in use .*choose another"):
            serve(folder, port)
    assert os.environ["GITHUB_TOKEN"] == TOKEN


def test_settings_are_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_SESSIONS", "none")
    with pytest.raises(SettingsError, match="MAX_SESSIONS must be a positive integer"):
        serve(tmp_path / "nowhere")


def test_an_incomplete_set_of_cards_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    render_cards(CapabilityConfig.load(folder), folder)
    (folder / "actor-data.yaml").unlink()
    with pytest.raises(ConfigError, match=r"actor-data\.yaml: the card is missing"):
        serve(folder, 0)


def test_the_cards_beside_the_sidecar_are_used(folder: Path) -> None:
    render_cards(CapabilityConfig.load(folder), folder)
    card = folder / "actor.yaml"
    card.write_text(card.read_text().replace("ACME.PARTS.CAP.SUP.007.WID-implementation", "A-name-of-its-own"))
    with serving(folder) as (process, started, _service):
        assert started["actor"] == "A-name-of-its-own"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_without_the_extra_serve_says_what_to_install(folder: Path) -> None:
    without = "import sys; sys.modules['uvicorn'] = None\n"
    catch = (
        "from foundry_implementation_actor import serve, ServeError\n"
        "try: serve('.')\nexcept ServeError as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", without + catch], env=environment(folder), capture_output=True, text=True, check=True
    )
    assert "the HTTP server is not installed" in ran.stdout
    assert install("serve") in ran.stdout
