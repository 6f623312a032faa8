"""The guards themselves, shown by small runs of pytest in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def run_pytest(folder: Path, test: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one test file under `support.guards` and no installed plug-in; `env` is added to its environment."""
    (folder / "test_inner.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "support.guards", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": "", **env},
        capture_output=True,
        text=True,
        check=False,
    )


LEAVES_A_CHILD = """
import subprocess

def test_it():
    subprocess.run(["sh", "-c", "sleep 987 & exit 0"], stdout=subprocess.DEVNULL)

def test_after_it():
    pass
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")])
def test_a_grandchild_left_running_fails_the_test_and_is_ended(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_pytest(tmp_path, LEAVES_A_CHILD, *options)
    assert done.returncode == 1
    assert "sleep 987" in done.stdout
    assert "2 passed, 1 error" in done.stdout


def test_a_child_that_a_wider_fixture_owns_may_stay(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import subprocess, pytest
from support import children

@pytest.fixture(scope="module")
def server():
    with subprocess.Popen(["sleep", "987"]) as process:
        children.expect(process.pid)
        yield
        process.kill()
        children.forget(process.pid)

def test_one(server): pass
def test_two(server): pass
""",
    )
    assert "2 passed" in done.stdout
    assert done.returncode == 0


SKIPS = """
import pytest

def test_by_a_call():
    pytest.skip("no tool")

@pytest.mark.skip(reason="no tool")
def test_by_a_mark():
    pass

@pytest.mark.xfail(strict=True)
def test_known_to_fail():
    assert False
"""
SKIPS_WHOLLY = "import pytest\npytest.skip('no tool', allow_module_level=True)\n"


@pytest.mark.parametrize(
    ("test", "in_ci", "elsewhere"),
    [(SKIPS, "1 failed, 1 xfailed, 1 error", "2 skipped, 1 xfailed"), (SKIPS_WHOLLY, "1 error", "1 skipped")],
)
def test_a_skip_is_a_failure_in_ci_and_a_skip_elsewhere(tmp_path: Path, test: str, in_ci: str, elsewhere: str) -> None:
    strict = run_pytest(tmp_path, test, CI="true")
    assert in_ci in strict.stdout
    assert "CI=true allows no skip" in strict.stdout
    assert "no tool" in strict.stdout
    assert elsewhere in run_pytest(tmp_path, test).stdout


def test_the_environment_holds_no_secret_and_a_home_of_its_own(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import os
def test_it(tmp_path_factory):
    assert not {name for name in os.environ if name.startswith(("GITHUB", "ANTHROPIC", "CLAUDE", "IMAGE"))}
    assert "GIT_DIR" not in os.environ
    assert os.environ["GIT_CONFIG_GLOBAL"] == os.devnull
    assert os.environ["HOME"].startswith(str(tmp_path_factory.getbasetemp()))
""",
        GITHUB_TOKEN="x",
        ANTHROPIC_API_KEY="x",
        CLAUDE_CODE_OAUTH_TOKEN="x",
        IMAGE_REGISTRY="x",
        GIT_DIR="/nowhere",
    )
    assert done.returncode == 0, done.stdout
