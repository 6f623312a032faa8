"""A red `verify` whose output is given to another session of the same run, within what the run may spend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from papeete_actor_synchronous_messaging.actor import Refusal

from foundry_implementation_actor.cli.progress import told
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.sandbox.choose import why_not
from support.apps import HONEST, SCAFFOLD
from support.place import Landed, Place, Step, shell, write
from support.repos import CAPABILITY_FILES, SIDECAR

WRONG, RIGHT = write("backend/new.py", "x = 1\n"), write("backend/new.py", "x = 2\n")
LOOKS = "grep -q 'x = 2' backend/new.py || { cat backend/new.py; exit 3; }"


def place_of(
    base: Path, settings: dict[str, str] | None = None, *, most: int = 1, looks: str = LOOKS, stub: str = ""
) -> Place:
    """A place whose backend may be remediated `most` times and whose stub, with a `verify` of its own, once."""
    text = verified(SIDECAR, "backend", ["sh", "-c", looks], most)
    text = verified(text, "stub", ["sh", "-c", stub], 1) if stub else text
    return Place(base, sidecar=text, local=True, settings=settings or {})


def verified(sidecar: str, component: str, argv: list[str], most: int) -> str:
    """The same sidecar whose component has this `verify`."""
    line = f"  - name: {component}\n"
    assert line in sidecar
    return sidecar.replace(line, f"{line}    verify: {json.dumps({'run': argv, 'remediate': most})}\n")


def session(*steps: Step, attempt: int | None = None, **result: Any) -> Step:
    """One whole session; `result` are fields of its closing word."""
    closing = [{"result": result}] if result else []
    return {"steps": [*steps, *closing], **({"attempt": attempt} if attempt else {})}


def stopped(place: Place, *sessions: Step, **settings: str) -> str:
    """As `Place.refused`, for a run that is stopped: what is said of it."""
    before = place.repo.branches()
    with pytest.raises((ActorError, Refusal)) as raised:
        place.run(*sessions, settings=settings)
    assert place.repo.branches() == before
    return str(raised.value)


def test_a_second_session_mends_what_the_first_left_red_and_the_commit_says_so(tmp_path: Path) -> None:
    first = session({"say": "I guessed."}, WRONG, attempt=1, text="I guessed.", turns=2, cost_usd=0.25)
    second = session({"say": "I mended it."}, shell("cat backend/new.py"), RIGHT, attempt=2, cost_usd=0.5)
    with place_of(tmp_path, most=2) as place:
        landed = place.landed(first, second)
        assert place.told.splitlines()[1] == "x = 1"
        asked = [told(record) for record in place.recorded("remediate")]
        ran = [len(place.recorded(step, "ok")) for step in ("session", "judge", "verify", "commit", "push")]
    assert [click.unstyle(line) for line in asked] == [
        "verify of backend is red (ended with code 3); remediation 1 of 2"
    ]
    assert ran == [2, 2, 2, 1, 1]
    assert landed.changes == {"backend/new.py": "A"}
    assert landed.read("backend/new.py") == "x = 2"
    for line in ("Session: scripted, 5 turns\n", "Verified-By: backend", "Remediated: backend, 1 of 2\n", "USD 0.7500"):
        assert line in landed.message
    assert "\n\nI guessed.\n\nI mended it.\n\n" in landed.message


def test_what_stays_red_is_refused_after_as_many_sessions_as_were_allowed_and_kept_once(tmp_path: Path) -> None:
    tries = [session(write("backend/new.py", f"x = 1{number}\n"), attempt=number) for number in (1, 2, 3)]
    with place_of(tmp_path, most=2) as place:
        because = place.refused(*tries)
        [kept] = place.recorded("kept")
        assert [record["attempt"] for record in place.recorded("remediate")] == [1, 2]
    assert because.startswith("after 2 remediations, the verify of backend (sh -c grep")
    assert "ended with code 3, its output ending `x = 13`; nothing was pushed; the change is kept as" in because
    assert "+x = 13" in Path(kept["path"]).read_text()


def test_with_a_list_alone_or_none_allowed_the_first_red_end_is_the_last(tmp_path: Path) -> None:
    with place_of(tmp_path, most=0) as place:
        because = place.refused(WRONG)
        assert len(place.recorded("session", "start")) == 1
    assert because.startswith("the verify of backend")


def test_the_boundary_is_judged_anew_after_each_session(tmp_path: Path) -> None:
    with place_of(tmp_path) as place:
        because = place.refused(session(WRONG, attempt=1), session(RIGHT, write("OUTSIDE.txt"), attempt=2))
    assert because.startswith("after 1 remediation, the change was refused and nothing of it was pushed: OUTSIDE.txt")


def test_a_component_that_was_green_is_verified_again_on_what_another_session_left(tmp_path: Path) -> None:
    both = session(RIGHT, write("stub/new.py"), attempt=1)
    breaks = session(WRONG, write("stub/ok"), attempt=2)
    with place_of(tmp_path, most=0, stub="test -e stub/ok") as place:
        because = place.refused(both, breaks)
        verified = [record["component"] for record in place.recorded("verify", "ok")]
    assert verified == ["backend", "stub", "backend"]
    assert because.startswith("after 1 remediation, the verify of backend")


def test_a_red_component_cannot_be_taken_away_in_place_of_being_mended(tmp_path: Path) -> None:
    with place_of(tmp_path) as place:
        because = place.refused(session(WRONG, attempt=1), session(shell("rm -r backend"), attempt=2))
        assert "the verify of backend was red, and a further session took the component away" in because


def test_each_component_has_a_number_of_its_own(tmp_path: Path) -> None:
    sessions = [
        session(WRONG, write("stub/new.py"), attempt=1),
        session(RIGHT, attempt=2),
        session(write("stub/ok"), attempt=3),
    ]
    with place_of(tmp_path, stub="test -e stub/ok") as place:
        landed = place.landed(*sessions)
    assert "Remediated: backend, 1 of 1\nRemediated: stub, 1 of 1\n" in landed.message


SEES = "ls -A $HOME $TMPDIR; git log --format=%s -1; ls .git/hooks; git status --short; rm -r .git"


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock", "none"])
def test_each_session_has_a_home_a_tmp_and_a_git_directory_of_its_own_and_only_the_files_stay(
    tmp_path: Path, sandbox: str
) -> None:
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")
    leaves = "touch $HOME/left $TMPDIR/left; mkdir .git/hooks; touch .git/hooks/left; git add -A; git commit -qm mine"
    last = "rm -rf .git; ln -s /etc .git; chmod 500 $HOME; chmod 555 ."
    with place_of(tmp_path, {"SANDBOX": sandbox}, most=2) as place:
        place.landed(
            session(WRONG, shell(leaves), attempt=1),
            session(shell(SEES), shell(last), attempt=2),
            session(RIGHT, shell("git status --short"), attempt=3),
        )
        told = place.told
    assert "left" not in told
    assert "mine" not in told
    assert told.count("?? backend/new.py") == 2


NOT_BY_ITSELF = {
    "missing": ("no-such-program", "could not be run"),
    "watcher": ("sh", "ended what watched over it"),
}


@pytest.mark.parametrize("case", NOT_BY_ITSELF)
def test_what_could_not_be_run_to_an_end_of_its_own_asks_for_no_further_session(tmp_path: Path, case: str) -> None:
    program, said = NOT_BY_ITSELF[case]
    text = verified(SIDECAR, "backend", [program, "-c", "kill -9 $PPID; sleep 600"], 3)
    with Place(tmp_path, sidecar=text, local=True) as place:
        assert said in place.refused(WRONG)
        assert len(place.recorded("session", "start")) == 1


@pytest.mark.parametrize(("line", "settings"), [("sleep 600", {"VERIFY_TIMEOUT_S": "1"}), ("cat /dev/zero", {})])
def test_a_limit_that_it_ran_into_is_mended_too(tmp_path: Path, line: str, settings: dict[str, str]) -> None:
    with place_of(tmp_path, settings, looks=f"grep -q 2 backend/new.py || {line}") as place:
        assert "Remediated: backend, 1 of 1" in place.landed(session(WRONG, attempt=1), session(RIGHT)).message


@pytest.mark.parametrize(
    ("settings", "first", "left"),
    [
        ({"MAX_TURNS": "1"}, {}, "1 turns (MAX_TURNS)"),
        ({"MAX_COST_USD": "2"}, {"cost_usd": 1.995}, "2 US dollars (MAX_COST_USD)"),
    ],
)
def test_where_nothing_is_left_of_the_budget_no_further_session_starts_and_the_answer_says_so(
    tmp_path: Path, settings: dict[str, str], first: dict[str, float], left: str
) -> None:
    with place_of(tmp_path, settings) as place:
        because = place.refused(session(WRONG, attempt=1, **first))
        assert not place.recorded("remediate")
    assert f"; no further session was started, because nothing is left of the run's budget of {left}" in because


def test_a_further_session_has_what_the_earlier_ones_left_and_is_stopped_in_terms_of_the_whole(tmp_path: Path) -> None:
    with place_of(tmp_path) as place:
        said = stopped(place, session(WRONG, shell("true"), attempt=1), session(RIGHT, shell("true")), MAX_TURNS="3")
        assert [record["turns"] for record in place.recorded("session-end")] == [2, 2]
        assert len(place.recorded("kept")) == 1
    assert "used up its budget of 3 turns; the work was cut off and nothing of it was pushed" in said
    assert "it was remediation 1 of 1 of backend, with what the run had left of its budget; the change is kept" in said


def test_a_further_session_that_breaks_stops_the_run_and_the_work_is_kept(tmp_path: Path) -> None:
    with place_of(tmp_path) as place:
        said = stopped(place, session(WRONG, attempt=1), session({"exit": 9}, attempt=2))
        assert "+x = 1" in Path(place.recorded("kept")[0]["path"]).read_text()
    assert "it was remediation 1 of 1 of backend" in said


def gate(tool: str, **arguments: Any) -> Step:
    return {"gate": {"tool": tool, "arguments": arguments}}


def test_a_gated_run_mends_through_the_same_gate_and_its_record_spans_the_sessions(tmp_path: Path) -> None:
    cart = {"plugin": "shop", "class": "Cart"}
    made = [gate("make", kind=kind, plugin="shop", name=name) for kind, name in (("plugin", ""), ("service", "Cart"))]
    begun = gate("implement", **cart, mode="start", content=HONEST)
    sidecar = verified(SIDECAR, "backend", ["grep", "-q", "def total", f"backend/{SCAFFOLD}"], 1)
    files = {**CAPABILITY_FILES, "backend/pyproject.toml": '[project]\nname = "shop"\nversion = "0"\n'}
    gated = f"{sidecar}gate: {{root: backend/, writes: gate}}\n"
    with Place(tmp_path, files=files, sidecar=gated, local=True, settings={"SANDBOX": "auto"}) as place:
        landed: Landed = place.landed(
            session(*made, begun, gate("edit", **cart, edits=[{"find": "no", "replace": "such"}]), attempt=1),
            session(gate("implement", **cart, mode="finish"), attempt=2),
        )
        assert [record["mcp_servers"] for record in place.recorded("session-start")] == [["gate: connected"]] * 2
    assert landed.read(f"backend/{SCAFFOLD}") + "\n" == HONEST
    assert "Gate: 1 landed, 1 refused\n" in landed.message
    assert "Remediated: backend, 1 of 1\n" in landed.message
