"""`assess-task` by the real command line: a session without a pen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.model import Request, ScriptedModel, Step, Turn, say, tool, turn, use
from support.place import Place, question
from support.serving import PROGRAM, Serving, real_environment

EYES = ["Glob", "Grep", "Read"]
VERDICT: dict[str, Any] = {
    "feasible": False,
    "objections": [{"id": "E1", "why": "no price for none is stated"}],
    "commitments": [],
}


def pens(request: Request) -> Turn:
    """Every tool that could write, in one turn."""
    return turn(
        tool("Write", file_path=f"{request.cwd}/backend/new.py", content="x = 1\n"),
        tool("Edit", file_path=f"{request.cwd}/backend/price.py", old_string="3", new_string="4"),
        tool("NotebookEdit", notebook_path=f"{request.cwd}/backend/n.ipynb", new_source="x"),
        tool("Bash", command=f"touch {request.cwd}/backend/made"),
    )


def read(request: Request) -> Turn:
    """What a file that the session tried to change holds by then."""
    return use("Read", file_path=f"{request.cwd}/backend/price.py")


def test_an_assessment_can_read_and_write_nothing(tmp_path: Path) -> None:
    steps: list[Step] = [pens, use("Glob", pattern="backend/**"), read, say(f"I looked.\n{json.dumps(VERDICT)}")]
    with (
        ScriptedModel(steps) as model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model)) as actor,
    ):
        before = place.repo.branches()
        reply = actor.call("assess-task", question())
        assert place.repo.branches() == before
    assert reply == (200, VERDICT)
    assert [request.tools for request in model.asked] == [EYES] * 4
    results = actor.recorded("session-tool-result")
    assert [result["is_error"] for result in results] == [True, True, True, True, False, False]
    assert "price.py" in results[4]["text"]
    assert not [name for name in ("new.py", "n.ipynb", "made") if name in results[4]["text"]]
    assert "3 * count" in results[5]["text"]
    assert not [
        served for served in place.server.served if "git-receive-pack" in served.target and served.method == "POST"
    ]


def test_an_assessment_that_never_ends_is_cut_off_in_the_contracts_words(tmp_path: Path) -> None:
    with (
        ScriptedModel(then=use("Glob", pattern="**")) as model,
        Place(tmp_path / "place") as place,
        Serving(place.folder, real_environment(place, model, ASSESS_MAX_TURNS="2")) as actor,
    ):
        reply = actor.call("assess-task", question())
    assert reply.status == 400
    for words in (
        "assess-task",
        "budget of 2 turns",
        "nothing was written or pushed",
        "raise ASSESS_MAX_TURNS (now 2)",
    ):
        assert words in reply.body["error"]


def test_the_command_line_assesses_without_a_server(tmp_path: Path) -> None:
    promised = {"feasible": True, "objections": [], "commitments": [{"id": "E1", "commitment": "it works"}]}
    with ScriptedModel([say(json.dumps(promised))]) as model, Place(tmp_path / "place") as place:
        argv = [*PROGRAM, "assess", str(place.folder), "--task", "-", "--json"]
        done = subprocess.run(
            argv,
            env=real_environment(place, model),
            input=json.dumps(question()).encode(),
            capture_output=True,
            check=False,
        )
    assert (done.returncode, json.loads(done.stdout)) == (0, promised)
