"""What a task costs beside its session: `implement-task` with a session that takes no time.

    python benchmarks/implement.py [--rounds N] [--files N] [--commits N] [--reference] [--json]

Each part measures both sides in turn, in one run, on tmpfs, and reports medians and their ratio:

    small     one task on a small repository, over HTTP with a login and over file://, against the bare
              git commands that do the same (clone, branch, add, commit, push, read back)
    large     the second task on a repository of 20,000 files and 2,000 commits, against a full clone of it
    reference the published package 0.7.0 doing the same two tasks, in a virtual environment of its own
              (only with --reference: it is installed from the package index)
    start     `--help`, `lint` and `show`, above `python -c pass`
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.demo.git_http import GitServer
from foundry_implementation_actor.sidecar.config import CapabilityConfig

CAPABILITY = "ACME.PARTS.CAP.SUP.007.WID"
REPOSITORY = f"acme-lab/{CAPABILITY}-implementation"
TOKEN = "benchmark-token"
SIDECAR = {
    "context": "foundry-implementation-actor/agentic-context/v1",
    "engine": "claude-code",
    "capability": CAPABILITY,
    "source_repo": REPOSITORY,
    "registry_repo": "acme-lab/registry",
    "components": [{"name": "backend", "path": "backend/", "dockerfile": "backend/deployment/local"}],
    "ground_in": [],
}
RESULT = (
    '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0,"usage":{},"result":"ok"}'
)
CLAUDE = f"""#!/bin/sh
echo "changed $$" > backend/changed.txt
echo '{RESULT}'
"""
GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
PEOPLE = {f"GIT_{role}_{what}": "b@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Bench:
    """One temporary place on tmpfs, with an instant `claude` and a `buildctl` that builds nothing."""

    def __init__(self, root: Path, rounds: int) -> None:
        self.root, self.rounds, self._tasks = root, rounds, 0
        self.bin = root / "bin"
        self.bin.mkdir()
        for name, text in (("claude", CLAUDE), ("buildctl", "#!/bin/sh\n")):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.path = f"{self.bin}:{os.environ['PATH']}"
        self.env = {"PATH": self.path, "HOME": str(root), **GIT, **PEOPLE}

    def git(self, *words: str, cwd: Path | None = None, stdin: bytes = b"") -> None:
        subprocess.run(
            ["git", *words], cwd=cwd or self.root, env=self.env, input=stdin, check=True, capture_output=True
        )

    def repository(self, name: str, files: int, commits: int) -> Path:
        """A bare repository below `root/name`, made with fast-import; returns the served root."""
        bare = self.root / name / f"{REPOSITORY}.git"
        bare.mkdir(parents=True)
        self.git("init", "-q", "--bare", "-b", "main", ".", cwd=bare)
        self.git("fast-import", "--quiet", cwd=bare, stdin=history(files, commits))
        self.git("tag", f"{CAPABILITY.lower()}-backend/v0.1.0", "main", cwd=bare)
        return self.root / name

    def engine(self, base_url: str, state: str) -> ClaudeCodeEngine:
        settings = Settings.from_env(
            {
                "PATH": self.path, "HOME": str(self.root), "GIT_BASE_URL": base_url, "GITHUB_TOKEN": TOKEN,
                "CLAUDE_CODE_OAUTH_TOKEN": "none", "IMAGES": "off", "ACTOR_STATE": str(self.root / state),
            }
        )  # fmt: skip
        return ClaudeCodeEngine(CapabilityConfig.from_dict(SIDECAR), settings=settings, sink=lambda _line, _meta: None)

    def task(self, engine: ClaudeCodeEngine) -> None:
        """One accepted task."""
        self._tasks += 1
        payload = {"task_id": f"T-{self._tasks}", "title": "t", "definition_of_done": ["d"]}
        prompt = f"verb: request\ndoor: implement-task\n{json.dumps({'payload': payload})}"
        reply = engine.judge(system="", prompt=prompt)
        assert reply["accepted"], reply

    def task_of(self, driver: subprocess.Popen[str]) -> None:
        """One accepted task of the package behind `reference_driver.py`."""
        self._tasks += 1
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.write(f"R-{self._tasks}\n")
        assert driver.stdout.readline().strip() == "True"

    def bare(self, url: str) -> None:
        """The git commands that one task comes down to."""
        self._tasks += 1
        tree, branch = self.root / f"bare-{self._tasks}", f"impl/B-{self._tasks}"
        self.git("clone", "-q", url, str(tree))
        self.git("checkout", "-q", "-b", branch, cwd=tree)
        (tree / "backend/changed.txt").write_text(f"{self._tasks}\n")
        self.git("add", "backend", cwd=tree)
        self.git("commit", "-q", "-m", "change", cwd=tree)
        self.git("push", "-q", url, f"HEAD:refs/heads/{branch}", cwd=tree)
        self.git("ls-remote", url, f"refs/heads/{branch}", cwd=tree)
        shutil.rmtree(tree)

    def against(self, *sides: Callable[[], object]) -> list[float]:
        """The median seconds of each side, measured in turn; one round before does not count."""
        times: list[list[float]] = [[] for _ in sides]
        for measured in range(self.rounds + 1):
            for side, kept in zip(sides, times, strict=True):
                started = time.perf_counter()
                side()
                if measured:
                    kept.append(time.perf_counter() - started)
        return [statistics.median(kept) for kept in times]


def history(files: int, commits: int) -> bytes:
    """A fast-import stream: all files in the first commit, one changed by each further one."""
    who = "committer b <b@example.org>"
    paths = [f"backend/app/part{i % 200:03}/file{i:05}.py" for i in range(files)]
    stream = [f"commit refs/heads/main\n{who} 1700000000 +0000\ndata 5\nfirst"]
    stream += [f"M 644 inline {path}\n{blob(path, 0)}" for path in [*paths, "backend/deployment/local/Dockerfile"]]
    for number in range(1, commits):
        path = paths[number * 7919 % files]
        stream.append(f"commit refs/heads/main\n{who} {1700000000 + number} +0000\ndata 4\nnext")
        stream.append(f"M 644 inline {path}\n{blob(path, number)}")
    return ("\n".join(stream) + "\n").encode()


def blob(path: str, number: int) -> str:
    """17 KB that compress to about two thirds, as a pack of source files does."""
    text = base64.encodebytes(random.Random(f"{path} {number}").randbytes(12_500)).decode()
    return f"data {len(text)}\n{text}"


def small(bench: Bench) -> Iterator[dict[str, Any]]:
    root = bench.repository("small", files=20, commits=5)
    with GitServer(root, TOKEN) as server:
        for name, url in (("http", server.url), ("file", root.as_uri())):
            login = url.replace("://", f"://x-access-token:{TOKEN}@") if name == "http" else url
            task = partial(bench.task, bench.engine(url, f"state-{name}"))
            ours, bare = bench.against(task, partial(bench.bare, f"{login}/{REPOSITORY}.git"))
            yield {"part": f"small, {name}", "ours_s": ours, "bare_git_s": bare, "ratio": ours / bare, "wanted": 1.5}


def large(bench: Bench, files: int, commits: int) -> Iterator[dict[str, Any]]:
    root = bench.repository("large", files, commits)
    url = f"{root.as_uri()}/{REPOSITORY}.git"

    def clone() -> None:
        bench.git("clone", "-q", url, str(bench.root / "clone"))
        shutil.rmtree(bench.root / "clone")

    engine = bench.engine(root.as_uri(), "state-large")
    ours, full = bench.against(lambda: bench.task(engine), clone)
    yield {
        "part": f"large, {files:,} files, {commits:,} commits", "ours_s": ours, "full_clone_s": full,
        "ratio": ours / full, "wanted": 0.35,
    }  # fmt: skip


def start(bench: Bench) -> Iterator[dict[str, Any]]:
    folder = bench.root / "use"
    folder.mkdir()
    (folder / "actor-agentic-context.yaml").write_text(json.dumps(SIDECAR))
    command = [sys.executable, "-m", "foundry_implementation_actor.cli.main"]
    calls = {"--help": 0.1, f"lint {folder}": 0.2, f"show {folder}": 0.2}

    run = partial(subprocess.run, env=bench.env, check=True, capture_output=True)
    sides = [partial(run, [sys.executable, "-c", "pass"]), *(partial(run, [*command, *call.split()]) for call in calls)]
    python, *times = bench.against(*sides)
    for (call, wanted), seconds in zip(calls.items(), times, strict=True):
        yield {"part": f"start, {call.split()[0]}", "above_python_s": seconds - python, "wanted_s": wanted}


def reference(bench: Bench, files: int, commits: int) -> Iterator[dict[str, Any]]:
    venv = bench.root / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    wanted = "foundry-implementation-actor==0.7.0"
    subprocess.run([str(venv / "bin/pip"), "install", "-q", wanted], check=True, capture_output=True)
    driver = Path(__file__).with_name("reference_driver.py")
    for name, size in (("small", (20, 5)), ("large", (files, commits))):
        root = bench.root / name if (bench.root / name).exists() else bench.repository(name, *size)
        engine = bench.engine(root.as_uri(), f"state-{name}-beside")
        words = [str(venv / "bin/python"), str(driver), str(root), json.dumps(SIDECAR), TOKEN]
        env = {**bench.env, "GITHUB_TOKEN": TOKEN, "IMAGE_REGISTRY": "registry.example.com", "TMPDIR": str(bench.root)}
        pipe = subprocess.PIPE
        with (
            instead_of_the_forge(bench, root),
            subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True, bufsize=1) as child,
        ):
            ours, other = bench.against(partial(bench.task, engine), partial(bench.task_of, child))
            child.communicate()
        yield {"part": f"reference 0.7.0, {name}, file", "ours_s": ours, "reference_s": other, "ratio": ours / other}


@contextlib.contextmanager
def instead_of_the_forge(bench: Bench, root: Path) -> Iterator[None]:
    """The reference speaks to github.com only; its git is told where that is."""
    config = bench.root / ".gitconfig"
    for prefix in ("https://github.com/", f"https://x-access-token:{TOKEN}@github.com/"):
        bench.git("config", "--file", str(config), "--add", f"url.{root.as_uri()}/.insteadOf", prefix)
    try:
        yield
    finally:
        config.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=where) as folder:
        bench = Bench(Path(folder), given.rounds)
        parts = [small(bench), large(bench, given.files, given.commits), start(bench)]
        if given.reference:
            parts.append(reference(bench, given.files, given.commits))
        for part in parts:
            for row in part:
                print(json.dumps(row) if given.as_json else shown(row), flush=True)


def shown(row: dict[str, Any]) -> str:
    cells = (f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items())
    return " · ".join(cell.removeprefix("part ") for cell in cells)


if __name__ == "__main__":
    main()
