"""Real git repositories, made the same way every time: fixed people, fixed dates, equal commit ids."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

CAPABILITY = "ACME.PARTS.CAP.SUP.007.WID"
SOURCE_REPO = f"acme-lab/{CAPABILITY}-implementation"
REGISTRY_REPO = "acme-lab/registry"
IMAGE_TAGS = tuple(f"{CAPABILITY.lower()}-{component}/v0.1.0" for component in ("backend", "stub"))

_DATE = "2026-01-02T03:04:05+00:00"
_ENV = {
    "LC_ALL": "C",
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": _DATE,
    "GIT_COMMITTER_NAME": "Cleo Committer",
    "GIT_COMMITTER_EMAIL": "cleo@example.org",
    "GIT_COMMITTER_DATE": _DATE,
}

Files = Mapping[str, str | bytes]


def git(cwd: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git in `cwd` with no configuration but the repository's; its stdout, last newline cut.

    Raises:
        AssertionError: when git ends with another code than 0; the message holds its stderr.
    """
    done = subprocess.run(
        ["git", *words],
        cwd=cwd,
        env={**_ENV, "PATH": os.environ["PATH"]},
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


@dataclass(frozen=True)
class Repo:
    """A repository on disk, bare or with a tree."""

    path: Path

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Run git here; see `git`."""
        return git(self.path, *words, stdin=stdin)

    def commit(self, files: Files = {}, message: str = "change", *, remove: Iterable[str] = ()) -> str:  # noqa: B006 - a mapping that is only read
        """Write and remove files in the tree, commit everything; the new commit's id."""
        write_files(self.path, files)
        for name in remove:
            (self.path / name).unlink()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.sha()

    def sha(self, ref: str = "HEAD") -> str:
        """The id of the commit that a ref names."""
        return self.git("rev-parse", "--verify", f"{ref}^{{commit}}")

    def branches(self) -> dict[str, str]:
        """Branch name to commit id."""
        return self._refs("refs/heads")

    def tags(self) -> dict[str, str]:
        """Tag name to the id of what it names."""
        return self._refs("refs/tags")

    def files(self, ref: str = "HEAD") -> list[str]:
        """Every path in a commit, as it is, sorted by git."""
        return self.git("ls-tree", "-r", "-z", "--name-only", ref).split("\0")[:-1]

    def read(self, path: str, ref: str = "HEAD") -> str:
        """A file's text in a commit."""
        return self.git("cat-file", "blob", f"{ref}:{path}")

    def bare(self, path: Path) -> Repo:
        """A bare copy at `path`, with every branch and tag and no remote."""
        git(self.path, "clone", "--quiet", "--bare", "--no-hardlinks", ".", str(path))
        copy = Repo(path)
        copy.git("remote", "remove", "origin")
        return copy

    def add_commit(self, branch: str, files: Files, message: str = "change by someone else") -> str:
        """Add a commit on top of a branch of a bare repository, creating the branch at HEAD; its id."""
        base = self.branches().get(branch) or self.sha()
        stream = [f"commit refs/heads/{branch}\ncommitter Sam Someone <sam@example.org> 1767323045 +0000\n".encode()]
        stream += [b"data %d\n%s\nfrom %s\n" % (len(message.encode()), message.encode(), base.encode())]
        for name, content in files.items():
            body = content.encode() if isinstance(content, str) else content
            stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (_quoted(name), len(body), body))
        self.git("fast-import", "--quiet", "--date-format=raw", stdin=b"".join(stream))
        return self.sha(f"refs/heads/{branch}")

    def _refs(self, prefix: str) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", prefix).splitlines()
        return {name: sha for name, _, sha in (line.partition(" ") for line in lines)}


def _quoted(name: str) -> bytes:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode()


def write_files(root: Path, files: Files) -> None:
    """Write files below `root`, folders made as needed."""
    for name, content in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def make_repo(path: Path, files: Files, *, branch: str = "main", tags: Iterable[str] = ()) -> Repo:
    """A repository at `path` with one commit of `files` on `branch`, lightweight tags on it."""
    path.mkdir(parents=True, exist_ok=True)
    repo = Repo(path)
    repo.git("init", "--quiet", f"--initial-branch={branch}")
    repo.commit(files, "initial state")
    for tag in tags:
        repo.git("tag", tag)
    return repo


SIDECAR = f"""\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: {CAPABILITY}
source_repo: {SOURCE_REPO}
registry_repo: {REGISTRY_REPO}
components:
  - name: backend
    path: backend/
    dockerfile: backend/
  - name: stub
    path: stub/
    dockerfile: stub/
ground_in: []
"""

CAPABILITY_FILES: Files = {
    "README.md": "# Widgets\n\nWhat a widget costs, and a stand-in for those who only ask.\n",
    "backend/Dockerfile": "FROM scratch\nCOPY price.py /price.py\n",
    "backend/price.py": "def price(count: int) -> int:\n    return 3 * count\n",
    "backend/test_price.py": "from price import price\n\n\ndef test_two() -> None:\n    assert price(2) == 6\n",
    "stub/Dockerfile": "FROM scratch\nCOPY answer.json /answer.json\n",
    "stub/answer.json": '{"price": 6}\n',
    "docs/outside.md": "No component owns this file.\n",
}


def capability_repo(
    root: Path,
    *,
    source_repo: str = SOURCE_REPO,
    files: Files = CAPABILITY_FILES,
    sidecar: str = SIDECAR,
    tags: Iterable[str] = IMAGE_TAGS,
) -> Repo:
    """A bare capability repository at `root/<source_repo>.git`, as `GitServer(root, …)` serves it.

    Two components, `backend/` and `stub/`, each with a Dockerfile and the tag that versions its image;
    `actor-agentic-context.yaml` at the root is `sidecar`.
    """
    tree = make_repo(root / ".trees" / source_repo, {**files, "actor-agentic-context.yaml": sidecar}, tags=tags)
    target = root / f"{source_repo}.git"
    target.parent.mkdir(parents=True, exist_ok=True)
    return tree.bare(target)
