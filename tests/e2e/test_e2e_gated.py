"""A session of the real command line whose only pen is the gate, from the call to the pushed commit."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST
from support.model import ScriptedModel, Step, Turn, say, tool, turn, use
from support.place import Landed, Place, task
from support.repos import CAPABILITY_FILES, SIDECAR
from support.serving import Serving, real_environment

GATED = SIDECAR + "gate: {root: backend/, writes: gate}\n"
APP = {**CAPABILITY_FILES, "backend/pyproject.toml": '[project]\nname = "shop"\nversion = "0"\n'}
GATE = ("edit", "implement", "make", "read", "status", "test")
TOOLS = ["Glob", "Grep", "Read", *(f"mcp__gate__{name}" for name in GATE)]
CART = {"plugin": "shop", "class": "Cart"}


def make(kind: str, name: str = "") -> Turn:
    arguments = {"kind": kind, "plugin": "shop", "name": name}
    return Turn(({"type": "tool_use", "name": "mcp__gate__make", "input": arguments},))


def test_a_session_lands_a_class_with_no_other_pen_and_the_push_is_the_gates_own_record(tmp_path: Path) -> None:
    steps: list[Step] = [
        make("plugin"),
        make("service", "Cart"),
        make("test", "Cart"),
        use("mcp__gate__implement", **{**CART, "class": "TestCart"}, content=TEST),
        lambda request: turn(
            tool("Write", file_path=f"{request.cwd}/backend/{SCAFFOLD}", content=HONEST),
            tool("Bash", command="touch backend/outside.py"),
        ),
        use("mcp__gate__implement", **CART, content=FAKE),
        use("mcp__gate__implement", **CART, content=HONEST),
        use("mcp__gate__test", **CART),
        say("The cart is there."),
    ]
    with (
        ScriptedModel(steps) as model,
        Place(tmp_path / "place", files=APP, sidecar=GATED) as place,
        Serving(place.folder, real_environment(place, model)) as actor,
    ):
        reply = actor.call("implement-task", task())
        assert reply == (200, {"accepted": True, "branch": "impl/TASK-1", "images": []}), reply
    start = actor.recorded("session-start")[0]
    assert (sorted(start["tools"]), start["mcp_servers"]) == (TOOLS, ["gate: connected"])
    told = ["\n".join(request.messages) for request in model.asked]
    assert "No such tool available: Write" in told[5]
    assert "No such tool available: Bash" in told[5]
    assert "refused by own-test" in told[6]
    landed = Landed(place.repo, "impl/TASK-1")
    last = {body["file"]: body["after"] for record in actor.recorded("gate-landed") for body in record["bodies"]}
    assert set(last) == {SCAFFOLD, OWN_TEST}
    pushed = {path: hashlib.sha256(landed.read(f"backend/{path}").encode() + b"\n").hexdigest() for path in last}
    assert pushed == last
    made = {"src/plugins/__init__.py", "src/plugins/shop/__init__.py"}
    assert set(landed.changes) == {f"backend/{path}" for path in {*last, *made}}
    assert len(actor.recorded("gate-refused")) == 1
    for line in ("Judged-By: boundary, gate", "Gate: 2 landed, 1 refused"):
        assert line in landed.message
    assert "You have no other pen than the gate" in told[0]
