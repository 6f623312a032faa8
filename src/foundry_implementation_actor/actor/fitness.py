"""What every run needs of its host, each thing tried out and nothing left changed.

A finding is a value: `doctor` prints all of them, the demo refuses to start on one that it cannot do without.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from foundry_implementation_actor.domain.command import Command, Completed
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.system.install import install
from foundry_implementation_actor.system.process import run_contained

OLDEST_GIT = (2, 32)
"""Since then GIT_CONFIG_GLOBAL switches a user's configuration off; checkout.workers came with it."""

_LITTLE_SPACE = 1024**3
_NO_SPACE = 64 * 1024**2
_TIMEOUT_S = 20.0

# Leaves a child behind that has a session of its own, as a session's daemon would, and names it.
_ORPHAN = """
import os, signal, sys
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(writing, str(os.getpid()).encode())
    signal.pause()
print(sys.stdin.read(), os.read(reading, 32).decode())
"""


def python() -> Finding:
    """The interpreter; one that is too old could not have read this file."""
    return Finding("Python", State.OK, f"{platform.python_version()} at {sys.executable}")


def temporary_folder() -> Finding:
    """Where temporary files go."""
    try:
        with tempfile.TemporaryFile():
            return Finding("TMPDIR", State.OK, f"{tempfile.gettempdir()} can be written")
    except OSError as error:
        mend = "set TMPDIR to a directory with room that can be written"
        return Finding("TMPDIR", State.MISSING, f"no temporary file can be made: {error.strerror}", mend)


def git(path: str) -> Finding:
    """Git on this PATH, and whether it is new enough."""
    needed = ".".join(map(str, OLDEST_GIT))
    mend = f"install git {needed} or later (Debian: apt-get install git)"
    done = asked(path, "git", "--version")
    found = re.search(r"(\d+)\.(\d+)[.\d]*", done.text) if done else None
    if done is None or found is None:
        return Finding("git", State.MISSING, silent(done, "git"), mend)
    if (int(found[1]), int(found[2])) < OLDEST_GIT:
        return Finding("git", State.MISSING, f"{found[0]} is too old: a user's configuration would be in force", mend)
    return Finding("git", State.OK, f"{found[0]} at {shutil.which('git', path=path)}")


def containment(program: str = _ORPHAN) -> Finding:
    """Whether a session can be held: what it leaves behind is killed. A small one is run to see it.

    Args:
        program: Python that prints what it reads and the id of the process that it leaves behind.
    """
    mend = "run the actor on Linux 5.3 or later, with /proc mounted and prctl allowed"
    command = Command(
        (sys.executable, "-I", "-S", "-c", program), cwd=Path("/"), env={"PATH": os.defpath},
        timeout_s=_TIMEOUT_S, stdin=b"orphan",
    )  # fmt: skip
    try:
        done = run_contained(command)
    except (OSError, AttributeError) as error:  # the calls of Linux that Python offers nowhere else
        return Finding("containment", State.MISSING, f"a session cannot be held here: {error}", mend)
    word, _, orphan = done.text.strip().partition(" ")
    if word != "orphan" or not orphan.isdigit():
        return Finding("containment", State.MISSING, f"a child did not run: {done.errors[-300:]}", mend)
    if Path("/proc", orphan).exists():
        return Finding("containment", State.MISSING, f"process {orphan} outlived the child that left it behind", mend)
    return Finding("containment", State.OK, "what a session leaves running is killed at its end (tried out)")


def serving() -> Finding:
    """The `serve` extra; `implement` and `assess` do without it."""
    absent = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if not absent:
        return Finding("serve extra", State.OK, "installed")
    seen = f"{' and '.join(absent)} not installed: `serve` and `demo` cannot start, `implement` and `assess` can"
    return Finding("serve extra", State.WARNING, seen, install("serve"))


def listening(host: str) -> Finding:
    """Whether `serve` can listen on this address; a port is not tried."""
    try:
        host.encode("idna")  # what is no name at all is a TypeError below
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
            one.bind((host, 0))
    except (OSError, UnicodeError):
        return Finding("HOST", State.WRONG, f"{host!r} is no address of this host", "correct or unset HOST")
    return Finding("HOST", State.OK, f"serve can listen on {host}")


def artifacts_folder(artifacts: Path) -> Finding:
    """Whether work that is not pushed could be kept. Makes nothing."""
    nearest = next(place for place in (artifacts, *artifacts.parents) if os.path.lexists(place))
    mend = "set RUN_ARTIFACTS to a directory, no link, that the actor may write"
    if nearest == artifacts and artifacts.is_symlink():
        return Finding("RUN_ARTIFACTS", State.WRONG, f"{artifacts} is a link", mend)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("RUN_ARTIFACTS", State.WRONG, f"{artifacts} cannot be written", mend)
    return Finding("RUN_ARTIFACTS", State.OK, f"{artifacts} keeps what is not pushed")


def state_folder(state: Path) -> Finding:
    """Whether the actor may write its state, and how much room there is. Leaves no folder that was not there."""
    # Unlike Path.exists, this one raises for no path at all.
    missing = [place for place in (state, *state.parents) if not os.path.exists(place)]  # noqa: PTH110 - as above
    try:
        state.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=state):
            free = shutil.disk_usage(state).free
    except OSError as error:
        mend = "set ACTOR_STATE to a directory that the actor may write"
        return Finding("ACTOR_STATE", State.MISSING, f"{state} cannot be written: {error.strerror}", mend)
    finally:
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()
    return _room(state, free)


def asked(path: str, *argv: str) -> Completed | None:
    """What a program of this PATH says to a question such as `--version`; None when it is not there."""
    try:
        with tempfile.TemporaryDirectory() as home:
            environment = {"PATH": path, "HOME": home, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
            return run_contained(Command(argv, cwd=Path(home), env=environment, timeout_s=_TIMEOUT_S))
    except (ActorError, OSError):
        return None


def silent(done: Completed | None, program: str) -> str:
    """Why a program's version is not known."""
    if done is None:
        return f"there is no {program} on PATH"
    return f"{program} does not say its version (exit {done.code}): {done.errors[-200:]}"


def _room(state: Path, free: int) -> Finding:
    seen = f"{state} can be written; {free / _LITTLE_SPACE:.1f} GiB free"
    if free >= _LITTLE_SPACE:
        return Finding("ACTOR_STATE", State.OK, seen)
    level = State.MISSING if free < _NO_SPACE else State.WARNING
    return Finding("ACTOR_STATE", level, seen, "free some space, or set ACTOR_STATE to a larger disk")
