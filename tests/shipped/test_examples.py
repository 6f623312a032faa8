"""What stands under `examples/`, run as its README says: no credentials, no model, no network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from foundry_implementation_actor import CapabilityConfig, conformance, lint, render_cards
from support.example_forge import EXAMPLES, ROOT, Forge
from support.repos import Repo
from support.serving import Serving

USE = EXAMPLES / "acme"
TASK = EXAMPLES / "peer" / "task.json"
BRANCH = "impl/TASK-014"

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


def run(environment: Mapping[str, str], *words: str | Path) -> Done:
    return subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_the_use_passes_lint_without_a_doubt() -> None:
    report = lint(USE)
    assert (report.errors, report.warns) == ([], [])


def test_the_cards_of_the_use_are_rendered_and_conform(tmp_path: Path) -> None:
    render_cards(CapabilityConfig.load(USE), tmp_path)
    assert conformance.check(tmp_path).ok
    assert CapabilityConfig.load(USE).actor_name in (tmp_path / "actor.yaml").read_text()


def test_the_dockerfile_of_the_use_is_the_one_that_is_built() -> None:
    assert (USE / "Dockerfile").read_text() == (ROOT / "docker" / "use.Dockerfile").read_text()


def test_the_instance_differs_from_the_use_in_its_knowledge_tool_only(forge: Forge) -> None:
    made = (forge.instance / "actor-agentic-context.yaml").read_text().splitlines()
    written = (USE / "actor-agentic-context.yaml").read_text().splitlines()
    differ = [(a, b) for a, b in zip(written, made, strict=True) if a != b]
    assert differ
    assert all(a.strip().startswith("fetch: [knowledge,") and "[printf," in b for a, b in differ)


def test_the_embedding_has_twelve_lines_and_lands_a_branch(forge: Forge) -> None:
    program = EXAMPLES / "embedding" / "embed.py"
    code = [line for line in program.read_text().splitlines() if line and not line.startswith('"""')]
    assert len(code) == 12
    done = run(forge.environment(), sys.executable, program, forge.instance, TASK)
    assert done.returncode == 0, done.stderr
    shown = re.search(r"^\{.*\}$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert shown
    assert json.loads(done.stdout) == json.loads(shown[0]) == {"accepted": True, "branch": BRANCH, "images": []}
    assert "no-lines" in Repo(forge.repository).read("backend/orders.py", BRANCH)


def peer(forge: Forge, served: Serving) -> Done:
    port = served.recorded("actor-started")[0]["port"]
    program = EXAMPLES / "peer" / "peer.py"
    return run(forge.environment(), sys.executable, program, f"127.0.0.1:{port}", forge.repository, TASK)


def test_the_peer_agrees_finds_what_is_wrong_and_gets_it_mended(forge: Forge) -> None:
    with Serving(forge.instance, forge.environment()) as served:
        done = peer(forge, served)
        doors = [record["door"] for record in served.recorded("call")]
    assert done.returncode == 0, done.stdout + done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith(
        "not yet: E1: an order without lines was answered with {'accepted': False, 'code': 'no-lines'}"
    )
    assert last == f"agreed and delivered: {BRANCH}"
    assert doors == ["assess-task", "implement-task", "implement-task"]
    assert len(Repo(forge.repository).git("log", "--format=%H", f"main..{BRANCH}").splitlines()) == 2


def test_the_peer_takes_an_objection_to_a_person_and_has_nothing_built(forge: Forge) -> None:
    with Serving(forge.instance, forge.environment("objection")) as served:
        done = peer(forge, served)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.startswith("for a person to decide: E2: nothing says what happens to orders")
    assert list(Repo(forge.repository).branches()) == ["main"]


def test_the_peer_says_what_the_membrane_refused(forge: Forge, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({**json.loads(TASK.read_text()), "priority": "high"}))
    with Serving(forge.instance, forge.environment()) as served:
        port = served.recorded("actor-started")[0]["port"]
        program = EXAMPLES / "peer" / "peer.py"
        done = run(forge.environment(), sys.executable, program, f"127.0.0.1:{port}", forge.repository, wrong)
    assert done.returncode == 1
    assert done.stderr.startswith("assess-task: 400: ")
    assert "priority" in done.stderr


def shown_lines(document: Path) -> list[str]:
    """Every command of a document's console blocks, its continuation lines joined."""
    blocks = re.findall(r"^```console\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    text = "".join(blocks).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def test_the_commands_of_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    lines = shown_lines(EXAMPLES / "README.md")
    alone = [line for line in lines if "serve" not in line and "peer.py" not in line]
    assert len(alone) == len(lines) - 2  # those two are what the peer's own tests run
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PLACE": str(tmp_path)}
    done = run(environment, "sh", "-euc", "\n".join(alone))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '{"accepted": true, "branch": "impl/TASK-014", "images": []}'
