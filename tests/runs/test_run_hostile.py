"""What a session leaves behind for the actor's own git to run, and where it looks for secrets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.place import TOKEN, Place, shell, write
from support.repos import CAPABILITY_FILES

NEW = "backend/discount.py"

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push", "post-checkout", "post-merge",
    "pre-auto-gc", "post-rewrite", "reference-transaction", "post-index-change", "fsmonitor-watchman", "update",
    "pre-receive", "post-receive", "applypatch-msg", "sendemail-validate",
)  # fmt: skip

# Everything that git runs because a configuration says so; MARK is the program, which notes its first argument.
CONFIGURATION = """\
[core]
    hooksPath = HOOKS
    fsmonitor = MARK fsmonitor
    sshCommand = MARK sshCommand
    editor = MARK editor
    pager = MARK pager
    askPass = MARK
    attributesFile = ATTRIBUTES
    alternateRefsCommand = MARK alternateRefs
[filter "evil"]
    clean = MARK clean
    smudge = MARK smudge
    process = MARK process
    required = true
[diff]
    external = MARK external
[diff "evil"]
    textconv = MARK textconv
    command = MARK diff-command
[merge "evil"]
    driver = MARK merge
[gpg]
    program = MARK
[commit]
    gpgSign = true
[push]
    gpgSign = if-asked
[credential]
    helper = !MARK credential
[alias]
    write-tree = !MARK alias
    update-index = !MARK alias
    push = !MARK alias
[url "file:///nowhere/"]
    insteadOf = http://
    insteadOf = file://
    pushInsteadOf = http://
[uploadpack]
    packObjectsHook = MARK pack-objects
[protocol]
    allow = always
[submodule]
    recurse = true
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


class Trap:
    """Files that make git leave a mark when it acts on what they say."""

    def __init__(self, base: Path) -> None:
        self.marks = base / "marks"
        self.marks.mkdir()
        self._base = base
        program = base / "mark"
        program.write_text(f'#!/bin/sh\ntouch "{self.marks}/$(basename "$0")-$(basename "${{1:-none}}")"\ncat\n')
        program.chmod(0o755)
        (base / "hooks").mkdir()
        for name in HOOKS:
            (base / "hooks" / name).symlink_to(program)
        (base / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
        words = {"HOOKS": base / "hooks", "MARK": program, "ATTRIBUTES": base / "attributes"}
        text = CONFIGURATION
        for word, value in words.items():
            text = text.replace(word, str(value))
        (base / "config").write_text(text)

    def set_in(self, git_dir: str) -> str:
        """The shell line that arms a git directory: its configuration, hooks and attributes."""
        return (
            f"mkdir -p {git_dir}/hooks {git_dir}/info; cat {self._base}/config >> {git_dir}/config;"
            f" cp {self._base}/hooks/* {git_dir}/hooks/; cp {self._base}/attributes {git_dir}/info/attributes"
        )

    def sprung(self) -> set[str]:
        return {mark.name for mark in self.marks.iterdir()}


ARMED = {
    "its own git directory": ".git",
    "a repository in the component's root": "backend/.git",
    "a repository beside a tracked file in a folder": "backend/deep/.git",
    "a folder that only looks like a repository": "backend/bare.git",
}


@pytest.mark.parametrize("where", ARMED)
def test_nothing_that_a_session_configures_is_run_by_the_actor(tmp_path: Path, where: str) -> None:
    files = {**CAPABILITY_FILES, "backend/deep/kept.py": "x = 1\n"}
    trap = Trap(tmp_path)
    git_dir = ARMED[where]
    init = "" if git_dir in {".git", "backend/bare.git"} else f"git init -q {Path(git_dir).parent};"
    with Place(tmp_path / "place", files=files) as place:
        steps = [
            shell(f"{init} {trap.set_in(git_dir)}"),
            write("backend/.gitattributes", "* filter=evil diff=evil\n"),
            write(NEW),
        ]
        landed = place.landed(*steps)
        assert trap.sprung() == set()
        assert landed.read(NEW) == "x = 1"


def test_the_trap_does_spring_for_a_git_that_listens(tmp_path: Path) -> None:
    """The session's own git acts on what the session wrote; so the test above shows something."""
    trap = Trap(tmp_path)
    with Place(tmp_path / "place", local=True) as place:
        use = "git hook run pre-commit; git status; git add -A"
        place.run(shell(trap.set_in(".git")), write(NEW), shell(f"{use}; ls {trap.marks}; rm -rf {trap.marks}/*"))
        assert {"pre-commit-none", "mark-fsmonitor", "mark-process"} <= set(place.told.split())
        assert trap.sprung() == set()


def test_the_sessions_own_home_configures_no_git_of_the_actor(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    with Place(tmp_path / "place") as place:
        config = f"cp {tmp_path}/config ~/.gitconfig; mkdir -p ~/.config/git; cp {tmp_path}/config ~/.config/git/config"
        place.landed(shell(config), write(NEW))
        assert trap.sprung() == set()


def test_a_filled_submodule_directory_runs_nothing(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    with Place(tmp_path / "place") as place:
        stream = f"commit refs/heads/main\ncommitter A <a@b.c> 1767323045 +0000\ndata 1\nx\nfrom {place.repo.sha()}\n"
        stream += f"M 160000 {'1' * 40} backend/sub\n"
        place.repo.git("fast-import", "--quiet", "--force", stdin=stream.encode())
        because = place.refused(shell(f"git init -q backend/sub; {trap.set_in('backend/sub/.git')}"), write(NEW))
        assert "backend/sub: is a submodule" in because
        assert trap.sprung() == set()


def test_a_repository_with_traps_of_its_own_runs_nothing(tmp_path: Path) -> None:
    """Attributes that the repository itself commits name a driver that nobody configured here."""
    trap = Trap(tmp_path)
    files = {**CAPABILITY_FILES, ".gitattributes": "* filter=evil diff=evil merge=evil\n"}
    with Place(tmp_path / "place", files=files) as place:
        place.landed(shell(trap.set_in(".git")), write(NEW))
        assert trap.sprung() == set()


def test_a_push_goes_where_the_sidecar_says_whatever_the_session_rewrites(tmp_path: Path) -> None:
    with Place(tmp_path) as place:
        other = place.repo.bare(tmp_path / "other.git")
        rewrite = "git config {} url.file://{}.insteadOf {}/acme-lab/ACME.PARTS.CAP.SUP.007.WID-implementation.git"
        address = place.server.url
        lines = [shell(rewrite.format(scope, other.path, address)) for scope in ("--local", "--global")]
        landed = place.landed(*lines, shell(f"git remote add origin {other.path}"), write(NEW))
        assert place.repo.branches()[landed.branch] == landed.commit
        assert list(other.branches()) == ["main"]


LOOK = """
import os
from pathlib import Path
token = {reversed!r}[::-1].encode()
places = [os.environb.get(b"GITHUB_TOKEN", b"")]
found = ["the environment"] if any(token in value for value in os.environb.values()) else []
for process in Path("/proc").iterdir():
    if process.name.isdigit():
        for name in ("environ", "cmdline"):
            try:
                found += [f"{{process}}/{{name}}"] if token in (process / name).read_bytes() else []
            except OSError:
                pass
for root in ({state!r}, os.environ["HOME"], os.environ["TMPDIR"], "."):
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder) / name
            try:
                found += [str(file)] if file.is_file() and token in file.read_bytes() else []
            except OSError:
                pass
print("FOUND", found, "OF", len(list(Path("/proc").iterdir())))
"""


@pytest.mark.parametrize("door", ["implement", "assess"])
def test_a_session_finds_the_token_nowhere(tmp_path: Path, door: str) -> None:
    token = f"tok-{uuid.uuid4().hex}"
    with Place(tmp_path, token=token) as place:
        (tmp_path / "look.py").write_text(LOOK.format(reversed=token[::-1], state=str(place.state)))
        answer = {"answer": {"feasible": True}}
        steps = (
            shell(f"python3 {tmp_path}/look.py; env; git remote -v; git config --list --show-origin"),
            write(NEW),
            answer,
        )
        actor = place.command(door, "--json", steps=steps)
        _, errors = actor.communicate(timeout=60)
        records = [json.loads(line) for line in errors.splitlines()]
        [told] = [record["text"] for record in records if record.get("step") == "session-tool-result"][:1]
        assert told.startswith("FOUND [] OF ")
        assert "GITHUB_TOKEN" not in told
        assert token not in errors


def test_whatever_secret_does_turn_up_is_hidden_everywhere(place: Place) -> None:
    """Here the script itself knows the token, as a session that was told it would."""
    place.run(shell(f"echo {TOKEN}; echo {TOKEN} >&2"), {"say": f"it is {TOKEN}"}, {"stderr": TOKEN}, write(NEW))
    assert "it is ***" in str(place.records)
    assert TOKEN not in str(place.records)


def test_what_a_grounding_tool_says_about_a_secret_is_hidden_from_the_caller(tmp_path: Path) -> None:
    with Place(tmp_path) as place:
        sidecar = (place.folder / "actor-agentic-context.yaml").read_text()
        fetch = "[sh, -c, 'echo my token is $GITHUB_TOKEN >&2; exit 1']"
        entry = f"ground_in:\n  - {{name: n, answers: a, into: .foundry/x, load: eager, fetch: {fetch}}}\n"
        (place.folder / "actor-agentic-context.yaml").write_text(sidecar.replace("ground_in: []\n", entry))
        actor = place.command("implement")
        output, errors = actor.communicate(timeout=60)
        assert "my token is ***" in errors
        assert TOKEN not in output + errors
        assert actor.returncode == 3
