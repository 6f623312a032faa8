"""The workflows: sound and safe to two linters, and each action pinned to a commit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from foundry_implementation_actor import version

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))

Workflow = dict[Any, Any]  # YAML 1.1 reads the key `on` as true


def loaded(name: str) -> Workflow:
    workflow: Workflow = yaml.safe_load((FOLDER / name).read_text())
    return workflow


def run(program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).with_name(program)
    return subprocess.run([path, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def steps(job: Workflow) -> list[Workflow]:
    found: list[Workflow] = job["steps"]
    return found


def test_actionlint_finds_nothing() -> None:
    done = run("actionlint", "-no-color", "-shellcheck", "", "-pyflakes", "", *WORKFLOWS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_zizmor_finds_nothing_not_even_a_smell() -> None:
    done = run("zizmor", "--offline", "--no-config", "--persona", "pedantic", "--color", "never", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings to report" in done.stdout + done.stderr


@pytest.mark.parametrize("wrong", ['run: echo "${{ github.event.issue.title }}"', "uses: actions/checkout@v7"])
def test_zizmor_sees_what_it_is_here_for(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "wrong.yml").write_text(
        f"name: x\non: issues\npermissions: {{}}\njobs:\n  x:\n    runs-on: ubuntu-24.04\n    steps:\n      - {wrong}\n"
    )
    assert run("zizmor", "--offline", "--no-config", "--color", "never", tmp_path / "wrong.yml").returncode != 0


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_that_is_named_with_its_version(path: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.*)$", path.read_text(), re.MULTILINE)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    pins = set(re.findall(r"uses: ([\w./-]+)@(.*)", "\n".join(path.read_text() for path in WORKFLOWS)))
    assert len({action for action, _ in pins}) == len(pins)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_is_put_into_a_shell_line_by_template_and_no_job_has_more_rights_than_it_names(path: Path) -> None:
    workflow = loaded(path.name)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"]
        assert [step["run"] for step in steps(job) if "${{" in step.get("run", "")] == []


def test_only_the_push_of_a_tag_publishes_the_wheel_and_moves_latest() -> None:
    release = loaded("release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": release[True]["workflow_dispatch"]}
    assert release["jobs"]["pypi"]["if"] == "github.event_name == 'push'"
    assert release["jobs"]["pypi"]["permissions"] == {"id-token": "write"}
    latest = [line for line in (FOLDER / "release.yml").read_text().splitlines() if re.search(r"\blatest\b", line)]
    assert [line.strip() for line in latest if not line.startswith("#")] == [
        "${{ github.event_name == 'push' && format('{0}:latest', steps.name.outputs.image) || '' }}",
        'if [ "$EVENT" = push ]; then copy latest; fi',
    ]


def test_the_wheel_is_built_once_and_checked_before() -> None:
    jobs = loaded("release.yml")["jobs"]
    lines = [step.get("run", "") for step in steps(jobs["build"])]
    check, build = (next(n for n, line in enumerate(lines) if word in line) for word in (".ci/run", "-m build"))
    assert check < build
    assert (jobs["pypi"]["needs"], jobs["image"]["needs"]) == ("build", "build")
    assert "-m build" not in "".join(step.get("run", "") for name in ("pypi", "image") for step in steps(jobs[name]))


def test_the_second_registry_gets_the_same_digest_or_the_release_fails() -> None:
    image = steps(loaded("release.yml")["jobs"]["image"])
    [push] = [step for step in image if step.get("id") == "push"]
    assert (push["with"]["sbom"], push["with"]["provenance"]) == (True, "mode=max")
    [copy] = [step for step in image if "skopeo" in step.get("run", "")]
    assert copy["env"]["FROM"].endswith("@${{ steps.push.outputs.digest }}")
    assert "--all --preserve-digests" in copy["run"]
    conditions = {step.get("if") for step in image if "vars.PRODUCT_IMAGE" in step.get("if", "")}
    assert conditions == {"vars.PRODUCT_IMAGE == ''", "vars.PRODUCT_IMAGE != ''"}


def test_a_tag_that_disagrees_with_the_version_is_refused() -> None:
    script = ROOT / "scripts" / "release-version"
    agreed = subprocess.run(["sh", script, f"v{version()}"], capture_output=True, text=True, check=False)
    assert agreed.returncode == 0, agreed.stderr
    assert re.fullmatch(rf"version={re.escape(version())}\nrevision=[0-9a-f]{{40}}\n", agreed.stdout)
    for wrong in ("v0.0.1", version(), f"v{version()}.post1", ""):
        refused = subprocess.run(["sh", script, wrong], capture_output=True, text=True, check=False)
        assert (refused.returncode == 0, refused.stdout) == (False, "")
