"""Sessions whose only pen is the gate, each case by a whole run; what lands is what the gate landed."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from papeete_actor_synchronous_messaging.actor import Refusal

from foundry_implementation_actor.domain.error import ActorError, SettingsError
from foundry_implementation_actor.gate import isolate
from foundry_implementation_actor.sandbox.choose import why_not
from foundry_implementation_actor.system.install import install
from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST
from support.place import Landed, Place, Step, shell, task, write
from support.repos import CAPABILITY_FILES, SIDECAR, Files

GATED = SIDECAR + "gate: {root: backend/, writes: gate}\n"
APP = {**CAPABILITY_FILES, "backend/pyproject.toml": '[project]\nname = "shop"\nversion = "0"\n'}
CART = {"plugin": "shop", "class": "Cart"}


def gate(tool: str, **arguments: Any) -> dict[str, Any]:
    """A step that uses a tool of the gate."""
    return {"gate": {"tool": tool, "arguments": arguments}}


MADE = [gate("make", kind=kind, plugin="shop", name=name) for kind, name in (("plugin", ""), ("service", "Cart"))]
MADE_TEST = gate("make", kind="test", plugin="shop", name="Cart")
LANDED = [
    *MADE,
    MADE_TEST,
    gate("implement", plugin="shop", **{"class": "TestCart"}, content=TEST),
    gate("implement", **CART, content=FAKE),
    gate("implement", **CART, content=HONEST),
]


# Says that it runs, and then hangs; nobody reads from the pipe for as long as it is open.
HANGING = """\
import time
from pathlib import Path


class TestCart:
    def test_it_hangs(self) -> None:
        with Path(__file__).parents[3].joinpath("pipe").open("w") as pipe:
            print("running", file=pipe, flush=True)
            time.sleep(600)
"""


def place_of(base: Path, files: Files = APP, sidecar: str = GATED, **settings: str) -> Place:
    return Place(base, files=files, sidecar=sidecar, local=True, settings={"SANDBOX": "none", **settings})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_of(tmp_path) as place:
        yield place


def attempts(place: Place, *names: str) -> list[dict[str, Any]]:
    """The records of attempts, without what every record has."""
    apart = {"level", "event", "step", "correlation_id", "task_id"}
    found = [record for record in place.records if record.get("step") in names]
    return [{key: value for key, value in record.items() if key not in apart} for record in found]


def test_what_the_gate_landed_is_what_is_pushed_and_each_attempt_is_recorded_as_in_its_ledger(place: Place) -> None:
    ledger: list[dict[str, Any]] = []

    def read_ledger(record: dict[str, Any]) -> None:
        if record.get("step") == "session-text":
            [kept] = place.state.glob("runs/*/gate/ledger.jsonl")
            ledger.extend(map(json.loads, kept.read_text().splitlines()))

    place.on_record = read_ledger
    landed = place.landed(*LANDED, {"say": "The cart is there."})
    packages = ("src/plugins/__init__.py", "src/plugins/shop/__init__.py")
    assert landed.changes == {f"backend/{path}": "A" for path in (*packages, SCAFFOLD, OWN_TEST)}
    assert landed.read(f"backend/{SCAFFOLD}") + "\n" == HONEST
    assert landed.read(f"backend/{OWN_TEST}") + "\n" == TEST
    assert "refused by own-test" in place.told
    assert [entry["landed"] for entry in ledger] == [True, False, True]
    assert attempts(place, "gate-landed", "gate-refused") == ledger
    for line in (
        "Judged-By: boundary, gate\n",
        "Gate: 2 landed, 1 refused\n",
        "\nUnjudged: shop.Cart (construction), ",
    ):
        assert line in landed.message


def test_the_php_house_lands_a_class_in_the_same_way(tmp_path: Path) -> None:
    house = Path(__file__).parents[1] / "gate_php" / "samples" / "house"
    files = {f"backend/{path.relative_to(house)}": path.read_bytes() for path in house.rglob("*") if path.is_file()}
    target = {"plugin": "Demo", "class": "GreeterService"}
    known = "public function known(): array { return $this->book->languages(); }"
    before = files["backend/src/Plugins/Demo/Services/GreeterService.php"].decode()
    assert known in before
    edits = [
        [{"find": known, "replace": known.replace("languages", "tongues")}],
        [{"find": known, "replace": f"/** Every language. */\n    {known}"}],
    ]
    with place_of(tmp_path, {**CAPABILITY_FILES, **files}) as place:
        landed = place.landed(*(gate("edit", **target, edits=pairs) for pairs in edits))
        assert landed.changes == {"backend/src/Plugins/Demo/Services/GreeterService.php": "M"}
        assert "Every language." in landed.read("backend/src/Plugins/Demo/Services/GreeterService.php")
        [refused] = attempts(place, "gate-refused")
    assert "tongues" in refused["because"]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_in_a_sandbox_the_gate_is_reached_and_the_tree_cannot_be_written(tmp_path: Path, sandbox: str) -> None:
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")
    meddled = (
        "for place in backend/x backend/price.py .git/x CLAUDE.md ../gate/x; do echo x >> $place; done; ls ../gate"
    )
    steps = [*MADE, gate("implement", **CART, content=HONEST), write("backend/extra.py"), shell(meddled)]
    with place_of(tmp_path, SANDBOX=sandbox) as place:
        landed = place.landed(*steps)
        assert landed.read(f"backend/{SCAFFOLD}") + "\n" == HONEST
        assert len(landed.changes) == 3
        assert "Error: [Errno" in place.told
        for name in ("backend/x", "backend/price.py", ".git/x", "CLAUDE.md", "../gate/x"):
            assert f"cannot create {name}: " in place.told


SPYING = """

    def test_it_reads_nothing_of_the_actor(self) -> None:
        for place in os.environ["PLACES"].split(":"):
            with pytest.raises(OSError):
                open(place + "/secret").close()
"""


@pytest.mark.parametrize(("sandbox", "refused"), [("bubblewrap", ""), ("landlock", "no namespaces")])
def test_what_is_judged_sees_no_place_of_the_actors_that_its_repository_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, refused: str
) -> None:
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")
    monkeypatch.setattr(isolate, "isolation_refusal", lambda: refused)
    places = [tmp_path / name for name in ("state", "artifacts", "docker")]
    for folder in places:
        folder.mkdir()
        (folder / "secret").write_text("a secret")
    said = f"environment: {{PLACES: '{':'.join(map(str, places))}', PATH: '{places[2]}:/usr/bin:/bin'}}\n"
    settings = {"SANDBOX": sandbox, "RUN_ARTIFACTS": str(places[1]), "DOCKER_CONFIG": str(places[2])}
    test = f"import os\n\nimport pytest\n{TEST}{SPYING}"
    steps = [*MADE, MADE_TEST, gate("implement", plugin="shop", **{"class": "TestCart"}, content=test)]
    with place_of(tmp_path, {**APP, "backend/gate.yaml": said}, **settings) as place:
        landed = place.landed(*steps, gate("implement", **CART, content=HONEST))
    assert "Gate: 2 landed, 0 refused" in landed.message


def test_what_was_done_behind_the_gates_back_refuses_all_of_it_and_is_named(place: Place) -> None:
    classes = ("Kept", "Rewritten", "Removed", "Marked", "Linked")
    made = [MADE[0], *(gate("make", kind="value-object", plugin="shop", name=name) for name in classes)]
    because = place.refused(
        *made,
        write("backend/extra.py"),
        shell("cd backend/src/plugins/shop; echo >> rewritten.py; rm removed.py; chmod +x marked.py"),
        shell("cd backend/src/plugins/shop; ln -sf kept.py linked.py; echo hidden.py > .gitignore"),
        shell("echo '# x' >> backend/price.py; echo '{}' >> ../gate/ledger.jsonl"),
    )
    shop = "backend/src/plugins/shop"
    for said in (
        "backend/extra.py: was added, and not by the gate, which is the only pen of this session",
        f"{shop}/rewritten.py: is not what the gate landed there",
        f"{shop}/removed.py: was landed by the gate and is not in the change",
        f"{shop}/marked.py: has the mode 100755",
        f"{shop}/linked.py: is not what the gate landed there",
        f"{shop}/.gitignore: was added, and not by the gate",
        "backend/price.py: was changed, and not by the gate",
    ):
        assert said in because
    assert "kept.py:" not in because
    assert place.recorded("refused")[-1]["judge"] == "gate"


def test_what_the_repository_does_not_take_in_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    with place_of(tmp_path, {**APP, "backend/.gitignore": "cart.py\n"}) as place:
        because = place.refused(*MADE)
    assert f"backend/{SCAFFOLD}: was landed by the gate and is not in the change" in because


@pytest.mark.parametrize("attributes", ["* text=auto eol=crlf\n", "*.py ident\n"])
def test_what_attributes_make_of_a_landed_body_is_the_gates_own_and_what_was_done_behind_its_back_is_not(
    tmp_path: Path, attributes: str
) -> None:
    package = {f"backend/src/plugins/{path}__init__.py": "" for path in ("", "shop/")}
    body = {f"backend/{SCAFFOLD}": f"# $Id$\n{HONEST}"}
    edit = gate("edit", **CART, edits=[{"find": "class Cart:", "replace": "class Cart:  # of one buyer"}])
    with place_of(tmp_path, {**APP, **package, **body, ".gitattributes": attributes}) as place:
        because = place.refused(edit, shell(f"echo '# more' >> backend/{SCAFFOLD}"), task_id="TASK-2")
        assert f"backend/{SCAFFOLD}: is not what the gate landed there" in because
        landed = place.landed(edit)
        assert landed.changes == {f"backend/{SCAFFOLD}": "M"}
        assert landed.read(f"backend/{SCAFFOLD}").startswith('# $Id$\n"""The service')


def test_a_change_of_gate_yaml_while_the_session_runs_changes_no_judge(place: Place) -> None:
    lenient = write("backend/gate.yaml", "runner: [/bin/true]\ninterpreter: [/bin/true]\n")
    place.landed(*LANDED[:-2], lenient, LANDED[-2], shell("rm backend/gate.yaml"))
    assert len(place.recorded("gate-refused")) == 1


def test_nothing_of_the_gates_own_is_in_the_tree_and_what_is_left_unfinished_is_said(place: Place) -> None:
    begun = gate("implement", **CART, mode="start", content="class Cart:\n")
    landed = place.landed(*MADE, begun, shell("find . -name .foundry; git status --short --ignored"))
    assert ".foundry" not in place.told
    assert place.recorded("gate-unfinished")[0]["classes"] == ["shop.Cart"]
    assert "Gate: 0 landed, 0 refused, 1 left unfinished" in landed.message
    assert f"backend/{SCAFFOLD} (a scaffold only)" in landed.message


def test_a_session_that_lands_nothing_is_told_what_the_gate_refused(place: Place) -> None:
    because = place.refused(gate("implement", **CART, content=HONEST))
    assert "(through the gate: 0 landed, 1 refused)" in because


def test_what_could_never_be_pushed_is_refused_by_the_gate_at_once(tmp_path: Path) -> None:
    sidecar = GATED + 'protected: ["**/locked/**"]\nscratch: [backend/src/plugins/scrap/]\n'
    with place_of(tmp_path, sidecar=sidecar.replace("root: backend/", "root: ./"), files=_at_the_top()) as place:
        made = [gate("make", kind="plugin", plugin=name) for name in ("locked", "scrap")]
        outside = gate("implement", plugin="shop", **{"class": "TestCart"}, content=TEST)
        because = place.refused(*made, outside)
        told = place.told
    assert "(through the gate: 0 landed, 1 refused)" in because
    assert "backend/src/plugins/locked/__init__.py is protected" in told
    assert "backend/src/plugins/scrap/__init__.py lies in a scratch directory" in told
    assert "tests/shop/test_cart.py lies outside of the component roots" in told


def _at_the_top() -> Files:
    layout = "language: python\nsource: backend/src/plugins/{plugin}\ntests: tests/{plugin}\nimports: [backend/src]\n"
    files = {
        "gate.yaml": layout,
        "tests/shop/test_cart.py": TEST,
        "backend/src/plugins/shop/cart.py": "class Cart:\n    pass\n",
    }
    return {**CAPABILITY_FILES, **files}


def test_a_session_is_told_of_its_gate_by_a_file_of_its_own_and_nowhere_else(place: Place) -> None:
    look = (
        "cd; stat -c '%n %a' gate.json; grep -o '[0-9a-f]\\{64\\}' gate.json > word; wc -l < word;"
        "cat /proc/$PPID/cmdline /proc/$PPID/environ /proc/self/environ | grep -ac -f word; cat word"
    )
    place.refused(shell(look))
    assert place.told.splitlines()[:4] == ["gate.json 600", "1", "0", "***"]


def test_the_gate_answers_nobody_without_the_token_of_the_run(place: Place) -> None:
    asked = (
        'python3 -c "import json, os, urllib.request as u; '
        "s = json.load(open(os.environ['HOME'] + '/gate.json'))['mcpServers']['gate']; "
        "u.urlopen(u.Request(s['url'], b'{}', {'Authorization': 'Bearer x'}))\""
    )
    place.refused(shell(asked))
    assert "HTTP Error 401" in place.told


UNFIT: dict[str, tuple[Files, str]] = {
    "no such folder": ({"stub/answer.json": "{}"}, "backend/: the gate's root is not in the repository"),
    "no app": (CAPABILITY_FILES, "backend/: no app here"),
    "a faulty gate.yaml": ({**APP, "backend/gate.yaml": "langage: python\n"}, "backend/gate.yaml:1:1"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_without_a_house_below_the_root_no_session_is_started(tmp_path: Path, case: str) -> None:
    files, because = UNFIT[case]
    with place_of(tmp_path, files) as place:
        refused = place.refused(*LANDED)
        assert because in refused
        assert str(tmp_path) not in refused
        assert not place.session_ran


def test_the_whole_actor_can_be_told_to_write_through_the_gate_alone(tmp_path: Path) -> None:
    asks = pytest.raises(SettingsError, match="the sidecar has 2 components: of which app is the gate")
    with place_of(tmp_path, sidecar=SIDECAR, SESSION_WRITES="gate") as place, asks:
        place.engine()
    one = "\n".join(line for line in SIDECAR.splitlines() if "stub" not in line) + "\n"
    with place_of(tmp_path / "one", sidecar=one, SESSION_WRITES="gate") as place:
        assert "Judged-By: boundary, gate" in place.landed(*MADE).message


def test_an_assessing_session_has_no_gate(place: Place) -> None:
    place.assess({"answer": {"feasible": True, "objections": [], "commitments": []}})
    assert place.recorded("session-start")[0]["mcp_servers"] == []


def test_a_session_that_does_not_see_its_gate_is_ended_with_that_cause(place: Place) -> None:
    init = {"type": "system", "subtype": "init", "mcp_servers": [{"name": "gate", "status": "failed"}]}
    before = place.repo.branches()
    with pytest.raises((ActorError, Refusal), match="without its only pen, the gate"):
        place.run(*MADE, {"raw": json.dumps(init) + "\n"}, {"silence": True})
    assert place.recorded("session-end")[0]["cause"] == "no-gate"
    assert place.repo.branches() == before


def test_several_gated_sessions_run_at_once(place: Place) -> None:
    engine = place.engine(*LANDED)
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda name: place.ask(engine, task_id=name), ("TASK-1", "TASK-2")))
    assert [reply["accepted"] for reply in replies] == [True, True]
    bodies = {Landed(place.repo, str(reply["branch"])).read(f"backend/{SCAFFOLD}") for reply in replies}
    assert bodies == {HONEST.removesuffix("\n")}


def hanging(place: Place) -> tuple[list[Step], Callable[[], Path]]:
    """A session whose last call of the gate hangs, and where the pipe is by which that says so."""
    steps = [shell("mkfifo backend/pipe"), *LANDED[:3]]
    steps.append(gate("implement", plugin="shop", **{"class": "TestCart"}, content=HANGING))
    return steps, lambda: next(place.state.glob("runs/*/tree/backend/pipe"))


def test_an_actor_that_stops_does_not_wait_for_a_call_of_the_gate(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    steps, pipe = hanging(place)
    engine = place.engine(*steps)
    made = threading.Event()
    place.on_record = lambda record: made.set() if record.get("step") == "session-tool-result" else None
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(place.ask, engine)
        assert made.wait(20)
        with pipe().open() as said:
            assert said.readline() == "running\n"
            engine.stop()
            assert said.read() == ""
        with pytest.raises((ActorError, Refusal), match="the actor is stopping"):
            asked.result(20)
    assert place.recorded("gate-landed") == []
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert not list(place.state.glob("runs/*/gate"))


def test_an_actor_that_is_killed_leaves_nothing_of_its_gate(place: Place) -> None:
    steps, pipe = hanging(place)
    actor = place.command("implement", "--json", steps=tuple(steps))
    assert actor.stderr
    for line in actor.stderr:
        if '"session-tool-result"' in line:
            break
    with pipe().open() as said:
        assert said.readline() == "running\n"
        actor.kill()
        assert said.read() == ""
    actor.communicate()
    assert actor.returncode == -signal.SIGKILL


WITHOUT_THE_EXTRA = """\
import sys
sys.modules.update(mcp=None, anyio=None, uvicorn=None, starlette=None)
from foundry_implementation_actor.cli.main import main
raise SystemExit(main())
"""


@pytest.mark.parametrize(("sidecar", "code"), [(GATED, 3), (SIDECAR, 0)])
def test_the_extra_is_needed_by_gated_sessions_alone(tmp_path: Path, sidecar: str, code: int) -> None:
    with place_of(tmp_path, sidecar=sidecar) as place:
        asked = tmp_path / "task.json"
        asked.write_text(json.dumps(task()))
        argv = [sys.executable, "-c", WITHOUT_THE_EXTRA, "implement", str(place.folder), "--task", str(asked)]
        environment = place.environment(write("backend/new.py"))
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert (install("gate") in done.stderr) is (code == 3)


def test_doctor_says_whose_only_pen_the_gate_is(place: Place) -> None:
    told, _ = place.command("doctor").communicate()
    assert "the only pen of implementing sessions, for the app in backend/" in " ".join(told.split())
