"""Sessions in each sandbox: one long one of the real command line, and ones that leave processes at every end."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from secrets import token_hex

import pytest

from foundry_implementation_actor.sandbox.choose import why_not
from support.model import Request, ScriptedModel, Step, Turn, say, tool, turn, use
from support.place import Landed, Place, shell, task
from support.serving import Serving, real_environment

READ_ONLY = ("Read-only file system", "Permission denied", "EROFS", "EACCES")

# Each in a way of its own; a line of its own says which.
TRIES = r"""
try() { "$@" 2>&1 && echo "DONE $1" || echo "REFUSED $1"; }
try tee stray-tee </dev/null
try sed -i s/./x/ docs/outside.md
try python3 -c 'open("stray-python", "w")'
try perl -e 'truncate("docs/outside.md", 0) or die $!'
try mv backend/price.py stray-moved
try mv docs/outside.md backend/taken.md
try ln backend/price.py stray-link
try rm docs/outside.md
try dd if=/dev/null of=docs/outside.md
ln -s ../docs/outside.md backend/way && try cp backend/price.py backend/way; rm -f backend/way backend/taken.md
(try touch stray-job) & wait
setsid --wait sh -c 'mkdir stray-session' 2>&1 || echo "REFUSED setsid"
"""
WAYS = ("tee", "sed", "python3", "perl", "mv", "ln", "rm", "dd", "cp", "touch", "setsid")

WORK = r"""
set -e
git status --short; git diff --stat
printf '\n# later\n' >> backend/price.py
git add backend; git commit -qm mine; git stash list
echo half >> backend/price.py; git stash -q; git stash pop -q; git checkout -q -- backend/price.py
git mv backend/price.py backend/cost.py; mv backend/cost.py stub/cost.py; mv stub/cost.py backend/price.py
git reset -q; rm -rf backend/__pycache__; mkdir -p $TMPDIR/deep/er; mktemp >/dev/null
python3 -m venv --without-pip "$HOME/venv"; (sleep 0; echo job > backend/job.txt) & wait
echo worked
"""

# Whatever a shell of the session can get hold of. What it finds out comes back in the answer, redacted, and in a
# file that is pushed, where only what the actor knows as its own would be found.
LOOT = r"""
exec > backend/loot.txt 2>&1
env
for p in /proc/[0-9]*; do
  for f in environ cmdline maps mountinfo; do tr '\0' '\n' < $p/$f; done
  readlink $p/cwd $p/root; ls -l $p/fd
done
git remote -v; git config --list --show-origin; cat .git/config .git/objects/info/alternates
printf 'protocol=http\\nhost=127.0.0.1\\n\\n' | git credential fill
find "$HOME" "$TMPDIR" PLACES -type f -size -1000k -not -path '*/loot.txt' -exec cat {} +
find / -xdev \( -name gate.json -o -name config.json -path '*docker*' \) -exec cat {} +
for one in PLACES; do ls -la $one; cat $one/*; done
cat /etc/shadow ~root/.netrc ~root/.git-credentials ~root/.docker/config.json /proc/1/environ /proc/kcore | head -c 9999
echo the end
"""

SANDBOXES = ["bubblewrap", "landlock"]


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest) -> str:
    """Each sandbox that can be had here."""
    name = str(request.param)
    if why_not(name):
        pytest.skip(f"{name} does not hold here: {why_not(name)}")
    return name


def outside(request: Request) -> Turn:
    """The tools that write, used outside of every component, and the ones that would start another agent."""
    return turn(
        tool("Write", file_path=f"{request.cwd}/stray-tool.txt", content="x\n"),
        tool("Write", file_path=f"{request.cwd}/.claude/settings.json", content="{}\n"),
        tool("Agent", description="go", prompt="Write stray-agent.txt", subagent_type="general-purpose"),
        tool("Task", description="go", prompt="Write stray-agent.txt", subagent_type="general-purpose"),
    )


def inside(request: Request) -> Turn:
    """The same tools where they may write."""
    return turn(
        tool("Write", file_path=f"{request.cwd}/backend/discount.py", content="RATE = 1\n"),
        tool("Edit", file_path=f"{request.cwd}/backend/discount.py", old_string="1", new_string="2"),
    )


BACKGROUND = "touch stray-background 2> backend/background.log; echo ended >> backend/background.log"
AWAITED = "until grep -q ended backend/background.log; do sleep 0.05; done; cat backend/background.log"


def test_a_whole_task_of_the_real_command_line_lands_and_each_try_outside_is_refused_there_and_then(
    tmp_path: Path, sandbox: str
) -> None:
    steps: list[Step] = [
        inside,
        outside,
        use("Bash", command=TRIES),
        use("Bash", command=BACKGROUND, run_in_background=True),
        use("Bash", command=f"{AWAITED}; rm backend/background.log"),
        use("Bash", command=WORK),
        say("done"),
    ]
    with (
        ScriptedModel(steps) as model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model, SANDBOX=sandbox)) as actor,
    ):
        reply = actor.call("implement-task", task())
    results = actor.recorded("session-tool-result")
    told = "\n".join(result["text"] for result in results)
    assert reply == (200, {"accepted": True, "branch": "impl/TASK-1", "images": []}), told
    landed = Landed(place.repo, "impl/TASK-1")
    assert landed.changes == {"backend/discount.py": "A", "backend/job.txt": "A", "backend/price.py": "M"}
    assert landed.read("backend/discount.py") == "RATE = 2"
    assert actor.recorded("sandbox")[0]["sandbox"] == sandbox
    written, settings, *agents = results[2:6]
    assert any(why in written["text"] for why in READ_ONLY)
    assert all(result["is_error"] for result in (written, settings, *agents))
    assert ["No such tool available" in agent["text"] for agent in agents] == [True, True]
    tried, _, background, worked = results[6:]
    assert "DONE" not in tried["text"]
    assert [way for way in WAYS if f"REFUSED {way}" not in tried["text"]] == []
    assert sum(tried["text"].count(why) for why in READ_ONLY[:2]) >= len(WAYS)
    assert any(why in background["text"] for why in READ_ONLY)
    assert worked["text"].endswith("worked")


def test_a_session_that_prints_all_that_it_can_read_finds_no_secret_of_the_actor_or_of_another_run(
    tmp_path: Path, sandbox: str
) -> None:
    forge, other, kept, login, artifact = (f"{name}-{token_hex(16)}" for name in ("f", "o", "k", "l", "a"))
    artifacts, docker = tmp_path / "artifacts", tmp_path / "docker"
    with Place(tmp_path / "place", token=forge, settings={"SANDBOX": sandbox}) as place:
        planted = {
            place.state / "runs/another/home/gate.json": other,
            place.state / "answers/kept.json": kept,
            docker / "config.json": login,
            artifacts / "one.patch": artifact,
        }
        for path, secret in planted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"token": secret}))
        places = f"{place.state} {docker} {artifacts} {place.folder} {tmp_path}"
        landed = place.landed(
            shell(LOOT.replace("PLACES", places)),
            settings={"RUN_ARTIFACTS": str(artifacts), "DOCKER_CONFIG": str(docker)},
        )
        told = json.dumps(place.records)
    loot = landed.read("backend/loot.txt")
    assert loot.endswith("the end")
    assert "PATH=" in loot
    assert [secret for secret in (forge, other, kept, login, artifact) if secret in loot + told] == []


# Leaves a job, one in a session of its own, and one that was forked twice; each holds a pipe open while it lives.
LEAVES = """\
import os, time
held = os.open(os.environ["TMPDIR"] + "/held", os.O_WRONLY)
for deep in range(3):
    if os.fork() == 0:
        if deep:
            os.setsid()
        if deep > 1 and os.fork():
            os._exit(0)
        os.write(held, b".")
        time.sleep(600)
"""
ENDS: dict[str, tuple[str, dict[str, str]]] = {
    "success": ("true", {}),
    "clock": ("sleep 600", {"SESSION_TIMEOUT_S": "4"}),
    "processes": ("for one in $(seq 60); do sleep 600 & done; wait", {"MAX_PROCESSES": "30"}),
    "memory": (
        """python3 -c 'import time; x = b"x" * 300_000_000; time.sleep(600)'""",
        {"MAX_MEMORY_BYTES": "200000000"},
    ),
    "told": ("sleep 600", {}),
    "killed": ("sleep 600", {}),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_of_a_session_lives_after_its_end(tmp_path: Path, sandbox: str, end: str) -> None:
    goes_on, settings = ENDS[end]
    write_leaves = shell(f"cat > $TMPDIR/leaves.py <<'END'\n{LEAVES}END\nmkfifo $TMPDIR/held; echo x > backend/x")
    steps = (write_leaves, shell(f"python3 $TMPDIR/leaves.py; {goes_on}"))
    with Place(tmp_path, local=True, settings={"SANDBOX": sandbox, **settings}) as place:
        actor = place.command("implement", "--json", steps=steps)
        assert actor.stderr
        assert any('"session-tool-result"' in line for line in actor.stderr)
        [pipe] = place.state.glob("runs/*/tmp/held")
        with pipe.open("rb", buffering=0) as held:
            assert [held.read(1) for _ in range(3)] == [b"."] * 3
            if end in {"told", "killed"}:
                actor.send_signal(signal.SIGTERM if end == "told" else signal.SIGKILL)
            assert held.read(1) == b""
        _, errors = actor.communicate(timeout=30)
    assert "Traceback" not in errors
    assert actor.returncode == {"success": 0, "told": 130, "killed": -signal.SIGKILL}.get(end, 1)
    if end not in {"success", "told", "killed"}:
        assert f'"cause": "{end}"' in errors


def test_a_state_that_is_reached_through_a_link_holds_sessions_like_any_other(tmp_path: Path, sandbox: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    settings = {"SANDBOX": sandbox, "ACTOR_STATE": str(tmp_path / "way/a b/state")}
    with Place(tmp_path / "place", local=True, settings=settings) as place:
        line = "git status --short && git log --format=%s >&2 && echo x > backend/x && echo x > stray"
        assert place.landed(shell(line)).changes == {"backend/x": "A"}
    assert "fatal" not in place.told
    assert any(why in place.told for why in READ_ONLY)
