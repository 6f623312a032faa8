"""`implement-task` by the real command line: the service, real git over HTTP, a scripted model on loopback."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from secrets import token_hex

import pytest

from support.bait import WORDS, bait
from support.claude import claude_binary
from support.model import Request, ScriptedModel, Step, Turn, fail, mentions, say, text, tool, turn, use
from support.place import Landed, Place, task
from support.repos import CAPABILITY_FILES, SIDECAR, write_files
from support.serving import MODEL_TOKEN, PROGRAM, Serving, real_environment

GROUNDED = SIDECAR.replace(
    "ground_in: []",
    """\
ground_in:
  - {name: why, answers: why widgets are, fetch: [echo, "the eager word is medlar for {capability}"],
     into: .foundry/why.md, load: eager}
  - {name: more, answers: what else there is, fetch: [echo, "the late word is loquat"],
     into: .foundry/more.md, load: on-demand}
""",
)
WORK = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]


def at(path: str, name: str, **arguments: str) -> Step:
    """A turn that uses a tool on a file of the tree, whose place is known only when the session runs."""
    return lambda request: use(name, file_path=f"{request.cwd}/{path}", **arguments)


def whole(model: ScriptedModel) -> str:
    """All that the model was ever sent, as JSON."""
    return json.dumps([request.body for request in model.requests], ensure_ascii=False)


def test_a_task_becomes_a_pushed_branch_while_the_repositorys_own_agent_files_stay_inert(tmp_path: Path) -> None:
    markers = tmp_path / "markers"
    markers.mkdir()
    steps = [
        at("backend/discount.py", "Write", content="RATE = 1\n"),
        at("backend/discount.py", "Edit", old_string="1", new_string="2"),
        use("Bash", command="printf 'more\\n' >> stub/notes.txt && git -C . status --short >/dev/null"),
        say("All is done."),
    ]
    with ScriptedModel(steps) as model, ScriptedModel() as elsewhere:
        hostile = bait(markers, elsewhere.url)
        files = {**CAPABILITY_FILES, **hostile, "CLAUDE.md": "# House rules\nThe own word is quince.\n"}
        with (
            Place(tmp_path / "place", files=files, sidecar=GROUNDED) as place,
            Serving(place.folder, real_environment(place, model)) as actor,
        ):
            reply = actor.call("implement-task", task(title="Give a quantity discount"))
    assert reply == (200, {"accepted": True, "branch": "impl/TASK-1", "images": []})
    landed = Landed(place.repo, "impl/TASK-1")
    assert landed.changes == {"backend/discount.py": "A", "stub/notes.txt": "A"}
    assert landed.read("backend/discount.py") == "RATE = 2"
    first = model.asked[0]
    assert first.tools == WORK
    told = "\n".join(first.messages)
    assert "Give a quantity discount" in told
    assert "The own word is quince." in told
    assert "the eager word is medlar for ACME.PARTS.CAP.SUP.007.WID" in told
    assert ".foundry/more.md" in told
    assert "loquat" not in whole(model)
    assert list(markers.iterdir()) == []
    assert elsewhere.requests == []
    assert [word for word in WORDS if word in whole(model)] == []
    assert {request.headers["authorization"] for request in model.asked} == {f"Bearer {MODEL_TOKEN}"}
    assert actor.recorded("session-start")[0]["mcp_servers"] == []


def test_the_same_repository_acts_through_a_command_line_that_is_started_plainly(tmp_path: Path, home: Path) -> None:
    """The control of the test above: its bait is live."""
    markers, tree = tmp_path / "markers", tmp_path / "tree"
    markers.mkdir()
    with ScriptedModel() as model, ScriptedModel() as elsewhere:
        write_files(tree, {**bait(markers, elsewhere.url), "CLAUDE.md": "quince"})
        environment = {
            "PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip
        argv = [str(claude_binary()), "--print", "--permission-mode", "acceptEdits", "Hello."]
        subprocess.run(argv, cwd=tree, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert {"hook-SessionStart", "hook-UserPromptSubmit", "mcp-server"} <= {path.name for path in markers.iterdir()}
    assert model.asked == []
    assert elsewhere.requests
    assert {"MARKAGENT", "MARKCOMMAND", "MARKSKILL"} <= {word for word in WORDS if word in whole(elsewhere)}


# Everything a shell of the session can get hold of, into a file that is pushed with its work.
LOOT = r"""
exec >> backend/loot.txt 2>&1
env; tr '\0' '\n' < /proc/$PPID/environ
for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ; tr '\0' ' ' < $p/cmdline; done
git remote -v; git config --list --show-origin; cat .git/config; printf 'host=127.0.0.1\n\n' | git credential fill
find "$HOME" "$TMPDIR" -type f -size -1000k -exec cat {} +
find STATE -type f -size -1000k -not -path '*/loot.txt' -exec cat {} +
for f in /proc/$PPID/fd/*; do [ ! -p $f ] || timeout 0.3 head -c 9999 $f; done
echo the end
"""


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"])
def test_a_session_that_is_not_held_finds_no_secret_of_the_actor(tmp_path: Path, variable: str) -> None:
    # Of this test alone: the session also sees the processes of tests that run beside it.
    forge, account = f"forge-{token_hex(16)}", f"account-{token_hex(16)}"
    with Place(tmp_path / "place", token=forge) as place:
        steps = [use("Bash", command=LOOT.replace("STATE", str(place.state))), say("done")]
        with ScriptedModel(steps) as model:
            login_of_model = {"CLAUDE_CODE_OAUTH_TOKEN": "", variable: account}
            environment = real_environment(place, model, SANDBOX="none", **login_of_model)
            with Serving(place.folder, environment) as actor:
                reply = actor.call("implement-task", task())
    assert reply.body["accepted"] is True, reply
    loot = Landed(place.repo, "impl/TASK-1").read("backend/loot.txt")
    assert loot.endswith("the end")
    assert "foundry_implementation_actor.cli serve" in loot
    assert "PATH=" in loot
    login = base64.b64encode(f"x-access-token:{forge}".encode()).decode()
    seen = loot + whole(model) + b"".join(actor.lines).decode()
    assert [secret for secret in (forge, login, account) if secret in seen] == []
    sent = {request.headers.get("authorization", request.headers.get("x-api-key")) for request in model.asked}
    assert sent == {f"Bearer {account}" if variable == "CLAUDE_CODE_OAUTH_TOKEN" else account}


def test_a_model_that_never_stops_is_cut_off_in_the_contracts_words(tmp_path: Path) -> None:
    def more(request: Request) -> Turn:
        return use("Bash", command=f"echo {len(request.messages)} >> backend/more.txt")

    with (
        ScriptedModel(then=more) as model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model, MAX_TURNS="3")) as actor,
    ):
        before = place.repo.branches()
        reply = actor.call("implement-task", task())
        assert place.repo.branches() == before
    assert reply.status == 400
    for words in (
        "implement-task",
        "budget of 3 turns",
        "cut off and nothing of it was pushed",
        "raise MAX_TURNS (now 3)",
    ):
        assert words in reply.body["error"]
    assert len(model.asked) <= 4
    assert actor.recorded("session-end")[0]["cause"] == "turns"


@pytest.mark.parametrize(("status", "kind"), [(401, "authentication_error"), (429, "rate_limit_error")])
def test_a_provider_that_gives_up_is_named_and_nothing_is_pushed(tmp_path: Path, status: int, kind: str) -> None:
    worked = at("backend/half.py", "Write", content="half\n")
    with (
        ScriptedModel([worked], then=fail(status, kind)) as model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model)) as actor,
    ):
        before = place.repo.branches()
        reply = actor.call("implement-task", task())
        assert place.repo.branches() == before
    assert reply.status == 400
    assert f"given up by the model's service: HTTP {status}" in reply.body["error"]
    assert "nothing of it was pushed" in reply.body["error"]
    assert actor.recorded("session-end")[0]["cause"] == "provider"


def test_every_record_of_a_call_is_a_bounded_line_of_json_with_its_ids(tmp_path: Path) -> None:
    some, more = ('é"\n' * lines for lines in (60_000, 250_000))

    def flood(content: str) -> Step:
        write = {"name": "Write", "content": content}
        return lambda request: turn(text(content), tool(**write, file_path=f"{request.cwd}/backend/long.txt"))

    model = ScriptedModel([flood(some), say(some)])
    model.route(mentions("TASK-2"), [flood(more), say("more than fits, so that this session is given up")])
    traces = {name: f"{number:032x}" for number, name in enumerate(("TASK-1", "TASK-2", "TASK-3"), 1)}
    with (
        model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model)) as actor,
    ):
        payloads = [task(), task(task_id="TASK-2"), {"task_id": "TASK-3"}]
        replies = [
            actor.call("implement-task", payload, traceparent=f"00-{traces[payload['task_id']]}-00000000000000ff-01")
            for payload in payloads
        ]
    assert [reply.status for reply in replies] == [200, 400, 400], replies
    assert Landed(place.repo, "impl/TASK-1").read("backend/long.txt") + "\n" == some
    assert max(map(len, actor.lines)) <= 65_536
    assert max(map(len, actor.lines)) > 16_384
    during = [r for r in actor.records if r.get("step") not in {"actor-started", "actor-stopping", "actor-stopped"}]
    assert {(record["correlation_id"], record.get("task_id")) for record in during} == {
        (trace, name) for name, trace in traces.items()
    }
    assert {record["event"] for record in during} == {"step", "event", "result"}
    assert all(line.startswith(b"{") and line.endswith(b"}\n") for line in actor.lines)


def test_the_command_line_does_the_same_without_a_server(tmp_path: Path) -> None:
    steps = [at("backend/new.py", "Write", content="x = 1\n"), say("done")]
    asked = tmp_path / "task.yaml"
    asked.write_text("task_id: TASK-1\ntitle: Add x\ndefinition_of_done: [x is there]\n")
    with ScriptedModel(steps) as model, Place(tmp_path / "place") as place:
        argv = [*PROGRAM, "implement", str(place.folder), "--task", str(asked), "--json"]
        done = subprocess.run(argv, env=real_environment(place, model), capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"accepted": True, "branch": "impl/TASK-1", "images": []})
    assert Landed(place.repo, "impl/TASK-1").changes == {"backend/new.py": "A"}
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert {(record["correlation_id"] != "", record.get("task_id")) for record in records} == {(True, "TASK-1")}
