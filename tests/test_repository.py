"""What holds for the tree as a whole: what a clone gets, and what stands in no file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES = 330

# Written so that this file does not find itself.
REGISTRY = re.compile(
    "|".join(
        [
            "index" + "-url",
            "--index" + "=",
            "find" + "-links",
            '"resolved"' + r'\s*:\s*"https?:',
            r"\bregistry\s*=\s*\"?https?" + ":",
        ]
    )
)
PUBLIC_REGISTRY = re.compile(r"https?:" + r"//(pypi\.org/simple|files\.pythonhosted\.org|registry\.npmjs\.org)")
MACHINE_PATH = re.compile(r"(?<![\w.{}/$-])/(?:work|farm|root)" + "/")


def tracked() -> list[Path]:
    """Every file that git has or would take, apart from those it is told to ignore."""
    words = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted(path for name in listed if name and (path := ROOT / name).is_file())


def places(pattern: re.Pattern[str]) -> list[str]:
    """`file:line: text` for every line of the tree in which the pattern stands."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("pattern", [REGISTRY, PUBLIC_REGISTRY, MACHINE_PATH])
def test_no_file_names_a_registry_or_a_place_on_one_machine(pattern: re.Pattern[str]) -> None:
    assert places(pattern) == []


@pytest.mark.parametrize("name", ["run", "dev", "image", "peers"])
def test_every_requirement_is_pinned_to_hashes(name: str) -> None:
    lock = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    requirements = [line for line in lock.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert requirements
    assert [line for line in requirements if not re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []


@pytest.mark.parametrize("name", ["run", "image"])
def test_whatever_runs_is_pinned_to_the_same_version_for_development(name: str) -> None:
    pinned, dev = _pins(name), _pins("dev")
    assert {package: dev.get(package) for package in pinned} == pinned


def test_whatever_the_project_asks_for_is_pinned() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = asked["project"], asked["dependency-groups"]
    runs = [*project["dependencies"], *project["optional-dependencies"]["serve"], *groups["build"]]
    develops = [requirement for requirement in groups["dev"] if isinstance(requirement, str)]
    assert _names(runs) - _pins("run").keys() == set()
    in_image = [
        *project["dependencies"],
        *project["optional-dependencies"]["serve"],
        *project["optional-dependencies"]["gate"],
    ]
    assert _names(in_image) - _pins("image").keys() == set()
    assert _names(runs + develops) - _pins("dev").keys() == set()


def test_whatever_calls_the_actor_is_pinned() -> None:
    asked = (ROOT / "requirements" / "peers.in").read_text().splitlines()
    assert _names([line for line in asked if not line.startswith("#")]) - _pins("peers").keys() == set()


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace(".", "-") for requirement in requirements}


def _pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE))


def test_the_lock_of_the_tools_has_an_integrity_for_each_package_and_no_address() -> None:
    packages = json.loads((ROOT / "tools" / "package-lock.json").read_text())["packages"]
    fetched = {name: package for name, package in packages.items() if name}
    assert [name for name, package in fetched.items() if not package.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, package in fetched.items() if "resolved" in package] == []


def test_no_module_has_outgrown_one_room() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in (ROOT / "src").rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}


def test_each_floor_imports_only_from_the_floors_below() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


SCRIPTS = [".ci/run", "examples/forge/make", *(f"scripts/{path.name}" for path in sorted((ROOT / "scripts").iterdir()))]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_run_and_parses(script: str) -> None:
    path = ROOT / script
    shell = path.read_text().splitlines()[0].removeprefix("#!").split()[-1].rpartition("/")[2]
    assert path.stat().st_mode & 0o111
    subprocess.run([shutil.which(shell) or shell, "-n", path], check=True)
