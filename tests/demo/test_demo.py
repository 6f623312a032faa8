"""The demo as a person starts it: a process of its own in a clean environment, real parts throughout."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.demo.stage import set_up
from foundry_implementation_actor.system.install import install
from support.claude import claude_binary
from support.model import Request, ScriptedModel, Turn, say, tool, turn, use

DEMO = (sys.executable, "-m", "foundry_implementation_actor.cli", "demo")
BRANCH = "impl/TASK-7"
RULE = "    return sum(line.quantity * line.unit_cents for line in lines)"
RULED = "    return sum((line.quantity - line.quantity // 3) * line.unit_cents for line in lines)"
FEASIBLE = json.dumps({"feasible": True, "objections": [], "commitments": [{"id": "E1", "commitment": "it will"}]})


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    """The TMPDIR of the demo, in which nothing may be left."""
    place = tmp_path / "tmp"
    place.mkdir()
    return place


def environment(tmp: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TMPDIR": str(tmp), **more}


def run(tmp: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *words], env=environment(tmp, **more), capture_output=True, text=True, check=False, timeout=120
    )


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def started(tmp: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*DEMO, *words], env=environment(tmp), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


def read_until(demo: subprocess.Popen[bytes], words: bytes) -> None:
    assert demo.stdout
    seen = b""
    while words not in seen:
        assert select.select([demo.stdout], [], [], 60)[0], seen
        chunk = demo.stdout.read(4096)
        assert chunk, seen
        seen += chunk


def test_the_demo_shows_a_question_a_refusal_and_a_pushed_branch_and_leaves_nothing(tmp: Path) -> None:
    done = run(tmp)
    assert (done.returncode, done.stderr) == (0, "")
    for shown in (
        "assess-task", '"feasible": true', "backend/deployment/local/Dockerfile: is protected and was changed",
        "nothing was pushed: the forge has the branch main and no other", f'"branch": "{BRANCH}"',
        "+    return quantity - quantity // 3", "images are off", "All went as told, in ",
    ):  # fmt: skip
        assert shown in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp.iterdir()) == []


def test_json_is_one_object_with_every_step_reply_and_the_diff(tmp: Path) -> None:
    done = run(tmp, "--json", SESSION_ENGINE="nonsense", MAX_TURNS="-1", GITHUB_TOKEN="not for the demo")
    outcome = told(done)
    assert (done.stderr, outcome["ok"], outcome["wrong"], outcome["kept"]) == ("", True, "", None)
    assert [step["ok"] for step in outcome["steps"]] == [True] * 6
    assert [call["door"] for call in outcome["calls"]] == ["assess-task", "implement-task", "implement-task"]
    assert [call["status"] for call in outcome["calls"]] == [200, 200, 200]
    refused, accepted = outcome["calls"][1:]
    assert refused["reply"]["accepted"] is False
    assert accepted["payload"]["remediation_context"] == refused["reply"]["because"]
    assert accepted["reply"] == {"accepted": True, "branch": BRANCH, "images": []}
    assert "+++ b/backend/cart/pricing.py" in outcome["diff"]
    assert "README.md" not in outcome["diff"].partition("diff --git")[2]
    assert outcome["images"].startswith("not published")
    assert 0 < outcome["seconds"] < 60
    assert list(tmp.iterdir()) == []


def test_what_is_kept_can_be_looked_at_and_asked_again_with_the_printed_commands(tmp: Path, tmp_path: Path) -> None:
    place = tmp_path / "kept, here's all of it: ünï"
    done = run(tmp, "--keep", str(place))
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp.iterdir()) == []
    assert sorted(path.name for path in place.iterdir()) == [
        "acceptance.py", "forge", "instance", "knowledge", "pushed", "session.yaml", "state", "tasks",
    ]  # fmt: skip
    look, assess, implement = [line for line in done.stdout.splitlines() if line.startswith(("  git ", "  GIT_BASE"))]
    said = [
        subprocess.run(["sh", "-ec", line], env=environment(tmp), capture_output=True, text=True, check=True)
        for line in (look, assess, implement)
    ]
    assert "diff --git a/backend/cart/pricing.py" in said[0].stdout
    assert said[1].stdout.startswith("feasible\n")
    assert said[2].stdout == f"accepted: {BRANCH}\n"


@pytest.mark.parametrize("taken", ["a file", "a folder with a file"])
def test_a_folder_that_is_in_use_is_not_touched(tmp: Path, tmp_path: Path, taken: str) -> None:
    place = tmp_path / "taken"
    mine = place if taken == "a file" else place / "mine"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    done = run(tmp, "--keep", str(place))
    assert (done.returncode, done.stdout) == (2, "")
    assert str(place) in done.stderr
    assert mine.read_text() == "mine"


def test_a_folder_whose_name_a_sidecar_would_misread_is_not_made(tmp: Path, tmp_path: Path) -> None:
    done = run(tmp, "--keep", str(tmp_path / "{all}"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "brace" in done.stderr
    assert not (tmp_path / "{all}").exists()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children take SIGINT, even where this process was started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(tmp: Path, sent: signal.Signals) -> None:
    demo = started(tmp)
    with demo:
        read_until(demo, b"session \xe2\x80\xa6")
        demo.send_signal(sent)
        assert demo.stdout
        assert demo.stderr
        demo.stdout.read()
        assert demo.stderr.read() == b"interrupted\n"
    assert demo.returncode == 130
    assert list(tmp.iterdir()) == []


def test_a_killed_demo_takes_its_actor_with_it(tmp: Path) -> None:
    with started(tmp) as demo:
        read_until(demo, b"POST /assess-task")
        demo.kill()
    # The guard of every test sees that the actor is gone.


def test_without_git_the_demo_says_what_to_install(tmp: Path) -> None:
    done = run(tmp, PATH=str(tmp))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: git: there is no git on PATH\nhint: install git 2.32 or later (Debian: apt-get install git)\n"
    )


def test_without_room_for_temporary_files_the_demo_says_so(tmp: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import tempfile\ntempfile._candidate_tempdir_list = lambda: ['/proc']\n"
    )
    done = run(tmp, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "set TMPDIR" in done.stderr


def test_a_reader_that_goes_away_ends_the_demo_and_nothing_is_left(tmp: Path) -> None:
    with started(tmp) as demo:
        read_until(demo, b"POST /assess-task")
        assert demo.stdout
        demo.stdout.close()
    assert demo.returncode == 128 + signal.SIGPIPE
    assert list(tmp.iterdir()) == []


WITHOUT_UVICORN = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "uvicorn" else find(name, *rest)
"""


def test_without_the_servers_extra_the_demo_says_what_to_install(tmp: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_UVICORN)
    done = run(tmp, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert install("serve") in done.stderr


@pytest.mark.parametrize(("given", "mend"), [("no claude", "npm install -g"), ("no login", "CLAUDE_CODE_OAUTH_TOKEN")])
def test_the_real_engine_says_what_it_lacks_before_anything_is_made(
    tmp: Path, tmp_path: Path, given: str, mend: str
) -> None:
    if given == "no login":
        claude = tmp_path / "claude"
        claude.write_text("#!/bin/sh\necho '2.1.197 (Claude Code)'\n")
        claude.chmod(0o755)
    done = run(tmp, "--engine", "claude-code", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (3, "")
    assert mend in done.stderr


def test_two_logins_for_the_real_engine_are_refused_before_anything_is_billed(tmp: Path) -> None:
    done = run(tmp, "--engine", "claude-code", CLAUDE_CODE_OAUTH_TOKEN="plan-token", ANTHROPIC_API_KEY="metered-key")
    assert done.returncode == 3
    assert "BILLING=metered" in done.stderr
    assert "plan-token" not in done.stderr


def edited(request: Request) -> Turn:
    place = f"{request.cwd}/backend/cart/pricing.py"
    return turn(tool("Edit", file_path=place, old_string=RULE, new_string=RULED))


def looked(request: Request) -> Turn:
    return use("Read", file_path=f"{request.cwd}/backend/cart/pricing.py")


def real(tmp: Path, model: ScriptedModel, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp.parent / "bin").mkdir()
    (tmp.parent / "bin" / "claude").symlink_to(claude_binary())
    path = f"{tmp.parent / 'bin'}:{os.environ['PATH']}"
    login = {"ANTHROPIC_API_KEY": "a-key-of-no-worth", "ANTHROPIC_BASE_URL": model.url}
    return run(tmp, "--engine", "claude-code", *words, PATH=path, **login)


def test_the_real_engine_delivers_with_the_users_login_and_address(tmp: Path) -> None:
    with ScriptedModel([say(FEASIBLE), looked, edited, say("done")]) as model:
        outcome = told(real(tmp, model, "--json"))
    assert [call["door"] for call in outcome["calls"]] == ["assess-task", "implement-task"]
    assert f"+{RULED}" in outcome["diff"]
    assert "Of every three equal articles in a line, one is free" in "".join(model.asked[0].messages)
    assert "a-key-of-no-worth" not in json.dumps(outcome)
    assert list(tmp.iterdir()) == []


def test_a_real_model_that_does_otherwise_is_told_as_it_is(tmp: Path) -> None:
    with ScriptedModel([say(FEASIBLE), say("I did nothing.")]) as model:
        done = real(tmp, model)
    assert done.returncode == 1
    assert "went otherwise: the task was not delivered" in done.stdout
    assert "A refused attempt is left out" in done.stdout


def test_the_forge_gets_the_samples_files_only_and_a_version_tag_for_each_image(tmp_path: Path) -> None:
    stage = set_up(tmp_path, os.environ["PATH"])
    files = stage.git.records("ls-tree", "-r", "-z", "--name-only", "HEAD")
    assert {path.partition("/")[0] for path in files} == {".gitignore", "README.md", "backend", "stub"}
    assert not [path for path in files if "__pycache__" in path]
    assert {component.name for component in stage.config.components} == {"backend", "stub"}
    for component in stage.config.components:
        assert f"{component.dockerfile.rstrip('/')}/Dockerfile" in files
        assert stage.git.text("tag", "--list", f"{stage.config.image_name(component.name)}/v*")


@pytest.mark.parametrize("component", ["backend", "stub"])
def test_the_samples_own_tests_are_green_with_python_alone(tmp_path: Path, component: str) -> None:
    files = set_up(tmp_path, os.environ["PATH"]).files_of("main")
    words = [sys.executable, "-S", "-m", "unittest", "discover", "--start-directory", component]
    done = subprocess.run(words, cwd=files, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ran 0 tests" not in done.stderr
