"""What a host lacks for images is said one by one, each with what to do, before anybody asks for a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foundry_implementation_actor.delivery.images.registry import Registry
from support.plain import SOURCES
from support.publishing import PROGRAMS, need_buildah

_LACKS = """
import json, sys
from foundry_implementation_actor.delivery.images.buildah import Buildah
from foundry_implementation_actor.delivery.images.registry import Registry

builder = Buildah(Registry("127.0.0.1:9", "", {}), {"PATH": sys.argv[1], "HOME": "/nonexistent"}, 60.0, False)
print(json.dumps([(error.message, error.hint) for error in builder.lacks()]))
"""
# buildah's own runtime is looked for in sbin too, whatever PATH says.
_NO_SBIN = ("--tmpfs", "/usr/sbin", "--tmpfs", "/usr/local/sbin")


def lacks(base: Path, *without: str, held: tuple[str, ...] = _NO_SBIN) -> list[list[str]]:
    """What is said on a host without these programs: message and hint of each."""
    need_buildah()
    programs = base / "bin"
    programs.mkdir()
    for name in set(PROGRAMS) - set(without):
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        assert found
        if "sbin" in Path(found).parts:
            shutil.copy(found, programs / name)  # a link would lead to where nothing is
        else:
            (programs / name).symlink_to(found)
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *held, "--", sys.executable, "-B", "-c", _LACKS, str(programs)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    said: list[list[str]] = json.loads(done.stdout)
    return said


def test_a_host_with_all_of_it_lacks_nothing(tmp_path: Path) -> None:
    assert lacks(tmp_path) == []


@pytest.mark.parametrize(
    ("program", "package"),
    [
        ("buildah", "buildah"),
        ("bwrap", "bubblewrap"),
        ("newuidmap", "uidmap"),
        ("newgidmap", "uidmap"),
        ("unshare", "util-linux"),
    ],
)
def test_a_program_that_is_missing_is_named_with_its_package(tmp_path: Path, program: str, package: str) -> None:
    [(message, hint)] = lacks(tmp_path, program)
    assert message == f"the program {program!r} was not found"
    assert f"apt-get install {package}" in hint


def test_a_missing_runtime_is_named_with_its_package(tmp_path: Path) -> None:
    [(message, hint)] = lacks(tmp_path, "runc")
    assert message == "neither runc nor crun was found"
    assert "apt-get install runc" in hint


def test_a_host_that_allows_no_user_namespaces_is_told_before_anything_is_built(tmp_path: Path) -> None:
    held = ("--unshare-user", "--disable-userns", "--uid", "0")
    [(message, hint)] = lacks(tmp_path, held=held)
    assert "buildah cannot be enclosed here: " in message
    assert "allow user namespaces" in hint
    assert "BUILDKIT_HOST" in hint


@pytest.mark.parametrize(
    ("address", "said"),
    [("", "IMAGE_REGISTRY is not set"), ("https://x", "is no registry"), ("x y/z", "is no registry")],
)
def test_an_address_that_is_no_registry_is_told(address: str, said: str) -> None:
    [missing] = Registry(address, "", {"PATH": os.defpath}).lacks()
    assert said in missing.message
    assert "host[:port][/path]" in missing.hint
