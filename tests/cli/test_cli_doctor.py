"""`doctor` on this host: fit, unfit in every way a setting or a tool can be, and never loose-tongued."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.actor.examine import DECLARED, TESTED_CLAUDE
from foundry_implementation_actor.actor.fitness import containment
from foundry_implementation_actor.cli.main import main
from foundry_implementation_actor.domain.fitness import State
from support.registry import LoopbackRegistry
from support.repos import SIDECAR, write_files

SECRETS = ("GITHUB_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
SCRIPT = "script: foundry-implementation-actor/script/v1\nsessions:\n- steps:\n  - say: hello\n"
LOCK = Path(__file__).parents[2] / "tools" / "package-lock.json"


class Host:
    """What `doctor` is told by the environment, and what it says."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: Path) -> None:
        self._patch, self._capsys, self.place = patch, capsys, place
        (place / "script.yaml").write_text(SCRIPT)
        self.set(
            IMAGES="off", GITHUB_TOKEN="a-token-of-no-worth", SESSION_ENGINE="scripted",
            SESSION_SCRIPT=str(place / "script.yaml"), ACTOR_STATE=str(place / "state"),
        )  # fmt: skip

    def set(self, **environ: str | None) -> None:
        for name, value in environ.items():
            if value is None:
                self._patch.delenv(name, raising=False)
            else:
                self._patch.setenv(name, value)

    def program(self, name: str, body: str) -> None:
        """A program of this host, found before any other of its name."""
        place = self.place / "bin"
        place.mkdir(exist_ok=True)
        (place / name).write_text(f"#!/bin/sh\n{body}\n")
        (place / name).chmod(0o755)
        self.set(PATH=f"{place}:{os.environ['PATH'].removeprefix(f'{place}:')}")

    def doctor(self, *words: str) -> tuple[int, str]:
        code = main(["doctor", *words])
        out, err = self._capsys.readouterr()
        assert err == ""
        return code, out

    def examined(self, *words: str) -> tuple[int, Any]:
        code, out = self.doctor("--json", *words)
        table = json.loads(out)
        assert table["fit"] is (code == 0)
        return code, table

    def found(self, subject: str, *words: str) -> Any:
        """The one finding about a subject."""
        [finding] = [f for f in self.examined(*words)[1]["findings"] if f["subject"] == subject]
        return finding


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Host:
    return Host(monkeypatch, capsys, tmp_path)


def test_a_fit_host_ends_with_0_and_keeps_no_folder_that_was_not_there(host: Host) -> None:
    code, out = host.doctor()
    assert (code, out.splitlines()[-1]) == (0, "A run could be made now.")
    assert "missing" not in out
    assert "MAX_TURNS" not in out
    assert not (host.place / "state").exists()


def test_json_holds_every_finding_and_every_setting(host: Host) -> None:
    code, table = host.examined()
    assert code == 0
    assert set(table) == {"fit", "findings", "settings"}
    assert all(set(finding) == {"subject", "state", "seen", "mend"} for finding in table["findings"])
    assert [row["name"] for row in table["settings"]] == [variable.name for variable in DECLARED.values()]
    rows = {row["name"]: row for row in table["settings"]}
    assert (rows["MAX_TURNS"]["value"], rows["MAX_TURNS"]["default"]) == ("", "60")
    assert rows["IMAGES"]["value"] == "off"


def test_the_settings_are_shown_where_they_are_asked_for_before_what_was_found(host: Host) -> None:
    _, out = host.doctor("--settings")
    first, *_ = lines = out.splitlines()
    assert first.startswith("Settings: ")
    rows = lines[1 : lines.index("")]
    assert [row.split()[0] for row in rows] == [variable.name for variable in DECLARED.values()]
    assert lines[-1] == "A run could be made now."


@pytest.mark.parametrize("name", ["nope.invalid", "192.0.2.1", "ä..b"])
def test_a_host_that_nothing_can_listen_on_is_wrong(host: Host, name: str) -> None:
    host.set(HOST=name)
    finding = host.found("HOST")
    assert (finding["state"], finding["seen"]) == ("wrong", f"'{name}' is no address of this host")
    host.set(HOST="127.0.0.1")
    assert host.found("HOST")["state"] == "ok"


def test_what_two_settings_say_against_each_other_is_one_sentence_about_the_first(host: Host) -> None:
    host.set(IMAGE_BUILDER="buildah")
    finding = host.found("IMAGES")
    assert finding["seen"] == "is off, and IMAGE_BUILDER=buildah contradicts it"
    assert finding["mend"] == "unset one of the two"


def test_a_script_that_is_not_set_is_one_thing_that_is_missing(host: Host) -> None:
    host.set(SESSION_SCRIPT=None)
    code, out = host.doctor()
    assert (code, out.splitlines()[-1]) == (3, "No run can be made now: 1 thing is missing or wrong.")


def test_the_sessions_of_a_script_are_counted(host: Host) -> None:
    assert host.found("script")["seen"].endswith("script.yaml: 1 session")
    (host.place / "script.yaml").write_text(f"{SCRIPT}- steps:\n  - say: more\n")
    assert host.found("script")["seen"].endswith("script.yaml: 2 sessions")


def test_what_holds_a_session_names_where_its_gaps_are_told(host: Host) -> None:
    seen = host.found("sandbox")["seen"]
    assert ("it cannot hold here" in seen) is ("`doctor --sandbox` says what each means" in seen)


def test_nothing_set_says_what_to_set_and_ends_with_3(host: Host) -> None:
    host.set(**dict.fromkeys(("IMAGES", "GITHUB_TOKEN", "SESSION_ENGINE", "SESSION_SCRIPT")), PATH="/usr/bin:/bin")
    code, table = host.examined()
    missing = {finding["subject"]: finding["mend"] for finding in table["findings"] if finding["state"] == "missing"}
    assert code == 3
    assert set(missing) == {"GITHUB_TOKEN", "claude", "model login", "images"}
    assert all(missing.values())


def test_a_host_that_is_listed_in_vain_is_warned_of_where_something_holds_a_session(host: Host) -> None:
    host.set(SESSION_HOSTS="127.0.0.1:8080", SANDBOX="auto")
    finding = host.found("SESSION_HOSTS")
    assert (finding["state"], "host.internal:8080" in finding["mend"]) == ("warning", True)
    host.set(SANDBOX="none")
    assert "SESSION_HOSTS" not in {finding["subject"] for finding in host.examined()[1]["findings"]}


@pytest.mark.parametrize(
    ("name", "value"),
    [("MAX_TURNS", "sixty"), ("PORT", "9" * 5000), ("IMAGES", "perhaps"), ("GIT_BASE_URL", "https://u:hunter2@forge"),
     ("IMAGE_REGISTRY", "https://x"), ("ACTOR_STATE", "a\nb"), ("GITHUB_TOKEN", "two words"),
     ("SESSION_ENGINE", "codex"), ("BILLING", "\udce9"), ("ANTHROPIC_BASE_URL", "http://[::1")],
)  # fmt: skip
def test_a_value_that_cannot_be_used_is_named_and_not_shown(host: Host, name: str, value: str) -> None:
    host.set(**{name: value})
    code, table = host.examined()
    [finding] = [finding for finding in table["findings"] if finding["subject"] == name][:1]
    assert (code, finding["state"]) == (3, "wrong")
    assert {row["name"]: row["value"] for row in table["settings"]}[name] == "(cannot be used)"
    assert "hunter2" not in json.dumps(table)
    assert host.doctor()[0] == 3


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("MAX_TURNS", "a, not b; c", "set MAX_TURNS to a positive integer of at most 10000, or unset it"),
        ("SESSION_ENGINE", "codex", "set SESSION_ENGINE to claude-code or scripted, or unset it"),
        ("GIT_BASE_URL", "http://u:p@f", "give the token in its own variable and leave only the address here"),
        ("ANTHROPIC_BASE_URL", "http://[::1", "correct or unset ANTHROPIC_BASE_URL"),
        ("SESSION_SCRIPT", "", "set SESSION_SCRIPT to a script"),
    ],
)
def test_what_mends_a_value_names_the_legal_ones(host: Host, name: str, value: str, mend: str) -> None:
    host.set(**{name: value})
    assert host.found(name)["mend"] == mend


def test_everything_wrong_is_listed_at_once(host: Host) -> None:
    host.set(MAX_TURNS="0", MAX_SESSIONS="-1", IMAGES="?", SESSION_SCRIPT="")
    _, table = host.examined()
    names = [finding["subject"] for finding in table["findings"] if finding["state"] in {"missing", "wrong"}]
    assert {"MAX_TURNS", "MAX_SESSIONS", "IMAGES", "SESSION_SCRIPT"} <= set(names)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_set_or_not_set_and_never_shown_wherever_else_it_stands(host: Host, name: str) -> None:
    host.set(**{name: "sesame-open-9271", "BUILDKIT_HOST": "tcp://sesame-open-9271", "BILLING": "metered"})
    _, table = host.examined()
    assert {row["name"]: row["value"] for row in table["settings"]}[name] == "set"
    assert "sesame-open" not in json.dumps(table)
    assert "sesame-open" not in host.doctor()[1]


# --- tools ---------------------------------------------------------------------------------------


def test_no_git_is_missing(host: Host) -> None:
    host.set(PATH=str(host.place))
    assert host.found("git") == {
        "subject": "git",
        "state": "missing",
        "seen": "there is no git on PATH",
        "mend": "install git 2.32 or later (Debian: apt-get install git)",
    }


@pytest.mark.parametrize(
    ("body", "state"),
    [("echo git version 2.32.0", "ok"), ("echo git version 2.31.8", "missing"), ("echo git version 10.0", "ok"),
     ("echo git version 2.45.1.windows.1", "ok"), ("echo what?", "missing"), ("exit 7", "missing"),
     ("kill -9 $$", "missing")],
)  # fmt: skip
def test_git_is_as_good_as_its_version(host: Host, body: str, state: str) -> None:
    host.program("git", body)
    assert host.found("git")["state"] == state


@pytest.mark.parametrize(
    ("body", "state"),
    [(f"echo '{TESTED_CLAUDE} (Claude Code)'", "ok"), ("echo '2.2.0 (Claude Code)'", "warning"),
     ("echo broken >&2; exit 1", "missing"), ("echo hello", "missing")],
)  # fmt: skip
def test_claude_is_held_against_the_version_that_was_tested(host: Host, body: str, state: str) -> None:
    host.set(SESSION_ENGINE="claude-code", ANTHROPIC_API_KEY="a-key-of-no-worth")
    host.program("claude", body)
    found = host.found("claude")
    assert found["state"] == state
    assert (TESTED_CLAUDE in found["mend"]) is (state != "ok")


def test_the_tested_version_is_the_one_that_the_tests_install() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    assert packages["node_modules/@anthropic-ai/claude-code"]["version"] == TESTED_CLAUDE


def test_what_a_session_leaves_running_is_really_killed_here(host: Host) -> None:
    assert host.found("containment")["state"] == "ok"


@pytest.mark.parametrize(
    ("program", "seen"),
    [("print(input(), 1)", "outlived"), ("print('x', 1)", "did not run"), ("1/0", "ZeroDivisionError")],
)
def test_a_host_on_which_a_child_lives_on_or_does_not_run_is_not_fit(program: str, seen: str) -> None:
    found = containment(program)
    assert found.state is State.MISSING
    assert seen in found.seen


# --- logins --------------------------------------------------------------------------------------


def login(host: Host, **given: str) -> Any:
    host.set(SESSION_ENGINE="claude-code", **given)
    host.program("claude", f"echo {TESTED_CLAUDE}")
    return host.found("model login")


def test_a_place_in_which_no_work_could_be_kept_is_said(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for where, state in (("file", "wrong"), ("file/below", "wrong"), ("link", "wrong"), ("new/er", "ok")):
        host.set(RUN_ARTIFACTS=str(tmp_path / where))
        assert host.found("RUN_ARTIFACTS")["state"] == state
    assert not (tmp_path / "new").exists()


def test_what_a_session_may_cost_is_said_and_that_nothing_bounds_it(host: Host) -> None:
    login(host, CLAUDE_CODE_OAUTH_TOKEN="plan-token")
    assert host.found("cost limit")["state"] == "ok"
    host.set(CLAUDE_CODE_OAUTH_TOKEN=None, ANTHROPIC_API_KEY="metered-key")
    assert (host.found("cost limit")["state"], host.found("cost limit")["mend"]) == ("warning", "set MAX_COST_USD")
    host.set(MAX_COST_USD="2.50")
    assert host.found("cost limit")["seen"].startswith("2.5 US dollars a session")
    host.set(MODEL_PRICES=str(host.place / "no-such-file"))
    assert host.found("cost limit")["state"] == "wrong"


def test_a_plans_token_or_a_key_is_one_login_and_who_pays_is_said(host: Host) -> None:
    assert login(host, CLAUDE_CODE_OAUTH_TOKEN="plan-token")["seen"] == "CLAUDE_CODE_OAUTH_TOKEN, paid by a plan"
    host.set(CLAUDE_CODE_OAUTH_TOKEN=None)
    assert login(host, ANTHROPIC_API_KEY="metered-key")["seen"] == "ANTHROPIC_API_KEY, billed by use"


def test_the_billing_trap_is_refused_and_a_wish_to_be_billed_is_a_warning(host: Host) -> None:
    both = {"CLAUDE_CODE_OAUTH_TOKEN": "plan-token", "ANTHROPIC_API_KEY": "metered-key"}
    host.set(**both)
    found = host.found("CLAUDE_CODE_OAUTH_TOKEN")
    assert found["state"] == "wrong"
    assert found["mend"] == "unset ANTHROPIC_API_KEY, or set BILLING=metered if that is what you want"
    found = login(host, **both, BILLING="metered")
    assert (found["state"], found["mend"]) == ("warning", "unset CLAUDE_CODE_OAUTH_TOKEN")
    assert "billed by use" in found["seen"]


def test_a_forge_of_files_needs_no_token(host: Host) -> None:
    host.set(GITHUB_TOKEN=None, GIT_BASE_URL="file:///srv/git")
    assert host.found("GITHUB_TOKEN")["state"] == "ok"


# --- images --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "state"), [("exit 0", "ok"), ("echo no daemon there >&2; exit 1", "missing")])
def test_the_builder_and_the_registry_are_asked(host: Host, tmp_path: Path, body: str, state: str) -> None:
    host.program("buildctl", body)
    with LoopbackRegistry(tmp_path / "registry") as registry:
        host.set(IMAGES="on", IMAGE_REGISTRY=registry.host, REGISTRY_TLS="off", BUILDKIT_HOST="tcp://127.0.0.1:1")
        found = host.found("images")
    assert found["state"] == state
    told = f"buildctl builds them, {registry.host} takes them; what a Dockerfile runs reaches no network"
    assert (told if state == "ok" else "no daemon there") in found["seen"]


def test_a_registry_that_does_not_answer_is_missing(host: Host, tmp_path: Path) -> None:
    host.program("buildctl", "exit 0")
    with LoopbackRegistry(tmp_path / "registry") as registry:
        pass
    host.set(IMAGES="on", IMAGE_REGISTRY=registry.host, REGISTRY_TLS="off", BUILDKIT_HOST="tcp://127.0.0.1:1")
    found = host.found("images")
    assert found["state"] == "missing"
    assert found["seen"].startswith(f"{registry.host}: the registry does not answer")


# --- state, script, instance ---------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/proc/nothing/here", "/dev/null", "/dev/null/below", "/" + "x" * 300, "/x" * 3000])
def test_a_state_that_cannot_be_written_is_missing(host: Host, place: str) -> None:
    host.set(ACTOR_STATE=place)
    found = host.found("ACTOR_STATE")
    assert found["state"] == "missing"
    assert found["mend"].startswith("set ACTOR_STATE")


def test_little_room_is_a_warning_and_none_is_missing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(host.place)
    for free, state in ((10 * 2**30, "ok"), (500 * 2**20, "warning"), (2**20, "missing")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert host.found("ACTOR_STATE")["state"] == state


def test_a_state_that_was_there_stays(host: Host) -> None:
    (host.place / "state").mkdir()
    assert host.found("ACTOR_STATE")["state"] == "ok"
    assert list((host.place / "state").iterdir()) == []


@pytest.mark.parametrize("script", ["", "script: x", "\x00", "a: [", "- " * 500])
def test_a_script_that_cannot_be_played_is_wrong(host: Host, script: str) -> None:
    (host.place / "script.yaml").write_text(script)
    assert host.found("script")["state"] == "wrong"


def test_a_script_that_is_not_there_is_missing(host: Host) -> None:
    (host.place / "script.yaml").unlink()
    found = host.found("script")
    assert found["state"] == "missing"
    assert found["seen"].endswith("script.yaml: SESSION_SCRIPT cannot be read: No such file or directory")


def test_an_instance_is_linted_with_its_cards_and_the_tools_of_its_knowledge(host: Host) -> None:
    tool = "ground_in:\n  - name: k\n    answers: a?\n    fetch: [no-such-tool]\n    into: .k/k.md\n    load: eager\n"
    write_files(host.place, {"actor-agentic-context.yaml": SIDECAR.replace("ground_in: []\n", tool)})
    code, table = host.examined(str(host.place))
    seen = {finding["state"]: finding["seen"] for finding in table["findings"] if finding["subject"] == "instance"}
    assert code == 3
    assert "no-such-tool" in seen["missing"]
    write_files(host.place, {"actor-agentic-context.yaml": SIDECAR})
    assert host.doctor(str(host.place))[0] == 0


@pytest.mark.parametrize(
    "sidecar", [None, "", "context: old/v0\n", "a: 1\na: 2\n", SIDECAR.replace("capability:", "capabilty:")]
)
def test_an_instance_that_cannot_be_used_is_wrong_and_nothing_of_it_is_called_well(
    host: Host, sidecar: str | None
) -> None:
    if sidecar is not None:
        write_files(host.place, {"actor-agentic-context.yaml": sidecar})
    code, table = host.examined(str(host.place))
    assert code == 3
    assert "ok" not in {finding["state"] for finding in table["findings"] if finding["subject"] == "instance"}
