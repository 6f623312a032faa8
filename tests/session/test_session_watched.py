"""What a held session takes on disk is looked for where it can write, and of one that is not held everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.run import Cause, SessionEnd
from foundry_implementation_actor.egress.allowed import Allowed
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.engines.script import Script, ScriptedSession
from foundry_implementation_actor.engines.scripted import Scripted
from foundry_implementation_actor.mcp_server.only_pen import OnlyPen, PenRule
from foundry_implementation_actor.sandbox.choose import choose, why_not
from foundry_implementation_actor.session.drive import drive
from foundry_implementation_actor.session.enclosure import Enclosure, Held, Places
from foundry_implementation_actor.session.pen import Pen
from foundry_implementation_actor.system.journal import Journal
from support.apps import python_app
from support.sessions import BUDGET, Stage

MB = 1024 * 1024
ROOM = replace(BUDGET, disk_bytes=8 * MB)
HELD = ["bubblewrap", "landlock"]
FILL = "head -c 20000000 /dev/zero > {}/big || exit; sleep 600"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "run")


def places(stage: Stage) -> Places:
    """A tree with two roots, one inside the other, a git directory, and much that is not the session's."""
    roots = tuple(stage.tree / name for name in ("backend", "backend/inner", ".git"))
    for folder in (*roots, stage.tree / "library", stage.base / "objects"):
        folder.mkdir()
    return Places(stage.tree, roots, stage.base / "home", stage.base / "tmp", stage.base / "objects")


@contextmanager
def held(stage: Stage, sandbox: str, pen: Pen | None = None) -> Iterator[Held]:
    if sandbox != "none" and why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")
    around = Enclosure(choose(sandbox), Allowed(), Upstream(), None, ()).around
    with around(places(stage), journal(stage), pen) as found:
        yield found


def journal(stage: Stage) -> Journal:
    return Journal(sink=lambda line, _: stage.records.append(json.loads(line)))


def fill(stage: Stage, sandbox: str, where: str) -> SessionEnd:
    """Let a session write more than it may to a place, as its shell spells it."""
    with held(stage, sandbox) as session:
        engine = Scripted(Script((ScriptedSession(({"shell": FILL.format(where)},)),)))
        order = stage.order(surroundings=dict(session.environment))
        return drive(engine, order, ROOM, session.journal, start=session.started, places=session.watched)


@pytest.mark.parametrize("sandbox", HELD)
def test_of_a_held_session_only_what_it_may_write_is_looked_through(stage: Stage, sandbox: str) -> None:
    with held(stage, sandbox) as session:
        found = [str(place.relative_to(stage.base)) for place in session.watched]
    assert found == ["tree/backend", "tree/.git", "home", "tmp"]


def test_of_a_session_that_nothing_holds_the_whole_tree_is_looked_through(stage: Stage) -> None:
    with held(stage, "none") as session:
        assert [str(place.relative_to(stage.base)) for place in session.watched] == ["tree", "home", "tmp"]
    assert fill(Stage(stage.base.parent / "other"), "none", "library").cause is Cause.DISK


def test_of_a_session_with_a_pen_the_tree_counts_that_its_gate_writes_to(stage: Stage) -> None:
    python_app(stage.tree)
    rule = PenRule("", lambda _: "", os.environ["PATH"], network=False, version="0", hidden=())
    with held(stage, "bubblewrap", OnlyPen(rule, stage.tree, stage.base, journal(stage))) as session:
        assert [str(place.relative_to(stage.base)) for place in session.watched] == ["tree", "home", "tmp"]


@pytest.mark.parametrize("where", ["backend/inner", ".git", "$HOME", "$TMPDIR"])
@pytest.mark.parametrize("sandbox", HELD)
def test_a_held_session_that_fills_the_disk_is_ended_wherever_it_writes(stage: Stage, sandbox: str, where: str) -> None:
    assert fill(stage, sandbox, where).cause is Cause.DISK


@pytest.mark.parametrize("sandbox", HELD)
def test_where_a_held_session_is_not_looked_for_it_cannot_write(stage: Stage, sandbox: str) -> None:
    end = fill(stage, sandbox, "library")
    assert (end.cause, (stage.tree / "library/big").exists()) == (Cause.FINISHED, False)
