"""What stands under `examples/`, run as its README says: no credentials, no model, no network."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from foundry_implementation_actor import CapabilityConfig, conformance, lint, render_cards
from support.example_forge import EXAMPLES, ROOT, Forge, plain
from support.repos import Repo
from support.serving import Serving
from support.shown import Played, play, shown

USE = EXAMPLES / "acme"
TASK = EXAMPLES / "peer" / "task.json"
BRANCH = "impl/TASK-014"

needs_php = pytest.mark.skipif(
    shutil.which("php") is None or shutil.which("phpunit") is None,
    reason="php-cli and phpunit are not installed; scripts/setup-php does it",
)

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


def run(environment: Mapping[str, str], *words: str | Path) -> Done:
    return subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("use", [USE, EXAMPLES / "python-house"], ids=lambda use: use.name)
def test_a_use_passes_lint_without_a_doubt(use: Path) -> None:
    report = lint(use)
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
    assert json.loads(done.stdout) == {"accepted": True, "branch": BRANCH, "images": []}
    assert "no-lines" in Repo(forge.repository).read("backend/orders.py", BRANCH)


def peer(forge: Forge, served: Serving) -> Done:
    port = served.recorded("actor-started")[0]["port"]
    program = EXAMPLES / "peer" / "peer.py"
    return run(forge.environment(), sys.executable, program, f"127.0.0.1:{port}", forge.repository.as_uri(), TASK)


def test_the_peer_agrees_finds_what_is_wrong_and_gets_it_mended(forge: Forge) -> None:
    with Serving(forge.instance, forge.environment()) as served:
        done = peer(forge, served)
        doors = [record["door"] for record in served.recorded("call")]
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    one, two, first, last = done.stdout.splitlines()
    assert (one[:14], two[:14]) == ("committed: E1:", "committed: E2:")
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


def test_the_commands_of_the_examples_print_what_is_shown(tmp_path: Path) -> None:
    lines = shown(EXAMPLES / "README.md")
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = str(one.getsockname()[1])
    commands = [*(one.command.replace("8080", port) for one in lines), "wait $!"]
    typed = play(commands, plain(TMPDIR=str(tmp_path), HOST="127.0.0.1"), ROOT)
    assert typed == [*(Played(one.output, 0) for one in lines), Played("", 0)]
    [records] = tmp_path.glob("tmp.*/records")
    told = [json.loads(line) for line in records.read_text().splitlines()]
    sessions = [record for record in told if (record.get("step"), record.get("phase")) == ("session", "start")]
    assert len(sessions) == 2  # one assessed, one mended: the first call found what the program had delivered


@pytest.mark.parametrize(
    "page",
    [*EXAMPLES.rglob("README.md"), ROOT / "docs" / "three-amigos.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_each_page_that_is_typed_starts_with_a_fresh_folder(page: Path) -> None:
    lines = shown(page)
    assert not lines or lines[0].command == "PLACE=$(mktemp -d)"


def test_no_forge_is_made_where_something_lies(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    done = run(plain(), "sh", EXAMPLES / "forge" / "make", tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"examples/forge/make: {tmp_path} is not empty; name a fresh folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@needs_php
def test_in_the_php_house_bodies_land_or_are_refused_as_its_readme_shows(tmp_path: Path) -> None:
    lines = shown(EXAMPLES / "php-house" / "README.md")
    typed = play([one.command for one in lines], plain(TMPDIR=str(tmp_path)), ROOT)
    assert [timeless(one.output) for one in typed] == [timeless(one.output) for one in lines]
    refused = [one.output.startswith("refused") for one in lines]
    assert [one.code for one in typed] == [int(one) for one in refused]
    assert sum(refused) == 3
    [library] = tmp_path.glob("tmp.*/library")
    fines = library / "src" / "Plugins" / "Library" / "Services" / "Fines.php"
    landed = (EXAMPLES / "php-house" / "bodies" / "Fines.php").read_text()
    assert fines.read_text() == landed.replace("A_DAY", "PER_DAY")


def timeless(text: str) -> str:
    """A text without its points in time."""
    return re.sub(r"\d{4}-\d\d-\d\dT\S+", "<time>", text)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed; scripts/setup-php does it")
def test_in_the_python_house_a_session_without_another_pen_lands_a_class_and_its_test(tmp_path: Path) -> None:
    document = EXAMPLES / "python-house" / "README.md"
    lines = shown(document)
    said = tmp_path / "said"
    commands = [f"{one.command} 2>>'{said}'" if " implement " in one.command else one.command for one in lines]
    assert play(commands, plain(TMPDIR=str(tmp_path)), ROOT) == [Played(one.output, 0) for one in lines]
    [told] = re.findall(r"^```text\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    progress = [line for line in said.read_text().splitlines() if line.startswith(("  error: OSError", "  the gate"))]
    assert len(progress) == len(told.splitlines())
    for line, shortened in zip(progress, told.splitlines(), strict=True):
        assert line.startswith(shortened)


@pytest.mark.parametrize("page", [*EXAMPLES.rglob("README.md")], ids=lambda page: page.parent.name)
def test_what_a_page_of_the_examples_links_to_is_there(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_example_is_in_the_table() -> None:
    table = [line for line in (EXAMPLES / "README.md").read_text().splitlines() if line.startswith("|")]
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - {"forge", "scripts", "three-amigos"}
    assert folders == set(re.findall(r"\[`([a-z-]+)/`\]", "\n".join(table)))
