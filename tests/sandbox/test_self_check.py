"""What is tried inside of each sandbox, as root and as a plain user, and what of it is known to get through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection

import pytest

from foundry_implementation_actor.sandbox import rules
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.inside.run import FIRST, TRIES
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.sandbox.self_check import Outcome, Result, full_check, program, refusal
from foundry_implementation_actor.sandbox.stage import staged
from support.plain import plain_python, run_as_plain

SANDBOXES: dict[str, Sandbox] = {"bubblewrap": Bubblewrap(), "landlock": Landlock()}
_AS_PLAIN = """
import json, sys
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sandbox.self_check import full_check, refusal
one = {"bubblewrap": Bubblewrap, "landlock": Landlock, "none": NoSandbox}[sys.argv[1]]()
outcomes = [[o.name, o.what, o.result, o.gap, o.why] for o in full_check(one)]
print(json.dumps({"outcomes": outcomes, "refusal": refusal(one)}))
"""
# Routes that this host may not have: nothing can be said of them here.
MAY_BE_UNTRIED = {
    "system-request", "binary-formats", "kernel-log", "device-events", "read-home", "control-group",
    "leave-control-group", "connect-6", "same-port-elsewhere", "device-of-a-disk", "kernel-setting", "passwords",
}  # fmt: skip
KNOWN = {
    ("bubblewrap", "root"): set(),
    ("bubblewrap", "plain"): set(),
    ("landlock", "root"): {"processes-seen", "limits", "reads-as-root", "ipc", "shared-memory", "metadata",
        "host-sockets", "same-port-elsewhere", "listen-unbound"},
    ("landlock", "plain"): {"processes-seen", "limits", "chmod", "ipc", "shared-memory", "metadata",
        "host-sockets", "same-port-elsewhere", "listen-unbound"},
}  # fmt: skip

# What an older kernel's Landlock leaves besides, by its ABI.
OLDER = {
    3: {"network-open", "signals", "nameless-sockets"},
    4: {"signals", "nameless-sockets"},
    5: {"signals", "nameless-sockets"},
}
BY_GAP = {"network-open": "connect", "signals": "kill-a-neighbour", "nameless-sockets": "nameless-socket"}


def judge(outcomes: list[Outcome], sandbox: str, user: str, *, older: Collection[str] = ()) -> None:
    through = {outcome.name: outcome for outcome in outcomes if outcome.result is Result.THROUGH}
    assert [one for one in through.values() if one.is_fault] == []
    assert {one.gap for one in through.values()} <= KNOWN[sandbox, user] | set(older)
    untried = {outcome.name for outcome in outcomes if outcome.result is Result.UNTRIED}
    assert untried <= MAY_BE_UNTRIED
    assert sum(outcome.result is Result.HELD for outcome in outcomes) >= 60
    assert len(outcomes) == len(TRIES) >= 100


@pytest.mark.parametrize("name", SANDBOXES)
def test_what_is_tried_is_held_or_known_to_get_through(name: str) -> None:
    judge(list(full_check(SANDBOXES[name])), name, "root" if os.getuid() == 0 else "plain")
    assert refusal(SANDBOXES[name]) == ""


@pytest.mark.parametrize("version", OLDER)
def test_as_on_an_older_kernel_landlock_holds_the_same_but_for_what_it_names(version: int) -> None:
    sandbox = Landlock(version)
    outcomes = list(full_check(sandbox))
    judge(outcomes, "landlock", "root" if os.getuid() == 0 else "plain", older=OLDER[version])
    through = {outcome.name for outcome in outcomes if outcome.result is Result.THROUGH}
    assert {gap for gap, name in BY_GAP.items() if name in through} == OLDER[version]
    assert OLDER[version] <= {gap.name for gap in sandbox.gaps}
    assert refusal(sandbox) == ""


def test_this_kernel_lets_nothing_more_through_than_it_has_gaps_for() -> None:
    names = {gap.name for gap in Landlock().gaps}
    assert {name for name in BY_GAP if name in names} == OLDER.get(rules.abi(), set())


def as_plain(sandbox: str) -> tuple[list[Outcome], str]:
    said = json.loads(run_as_plain(_AS_PLAIN, sandbox))
    return [Outcome(name, what, Result(result), gap, why) for name, what, result, gap, why in said["outcomes"]], said[
        "refusal"
    ]


@pytest.mark.skipif(not plain_python(), reason="no Python here that a plain user may start")
@pytest.mark.parametrize("name", SANDBOXES)
def test_for_a_plain_user_the_same_is_held_or_known(name: str) -> None:
    outcomes, refused = as_plain(name)
    judge(outcomes, name, "plain")
    assert refused == ""


@pytest.mark.skipif(not plain_python(), reason="no Python here that a plain user may start")
def test_without_a_sandbox_the_tries_get_through_so_that_holding_means_something() -> None:
    outcomes, refused = as_plain("none")
    through = {outcome.name for outcome in outcomes if outcome.result is Result.THROUGH}
    files = {"open-to-write", "append", "create", "truncate", "rename-over", "rename-in", "rename-out", "hard-link",
        "link-through", "link-folder", "dots", "map-shared", "reopen-by-descriptor", "by-own-root",
        "by-folder-of-a-neighbour", "nameless-file", "remove", "change-mode", "make-pipe", "make-socket"}  # fmt: skip
    others = {"kill-a-neighbour", "read-state", "copy-state", "write-state", "socket-outside", "nameless-socket",
        "lend-rights", "connect", "datagram", "shared-memory", "shared-segment", "user-namespace",
        "new-privileges"}  # fmt: skip
    assert (files | others) - through <= {"user-namespace"}  # some hosts allow none
    assert refused.startswith("it does not hold: ")


def test_every_try_says_what_it_does_and_names_a_gap_that_some_sandbox_has() -> None:
    gaps = (
        {gap for known in KNOWN.values() for gap in known} | {"stays-root"} | OLDER[3]
    )  # of a root that may not switch
    assert {one.gap for one in TRIES.values()} - {""} <= gaps
    assert all(one.what for one in TRIES.values())
    assert len(FIRST) >= 10


def test_the_tries_of_a_start_import_next_to_nothing_because_that_is_what_a_start_waits_for() -> None:
    with staged(None, FIRST) as stage:
        text = program(stage, FIRST) + "print(*sorted(sys.modules))\n"
        words = (sys.executable, "-I", "-S", "-c", text)
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    told = {line.split()[0] for line in said[:-1]}
    assert told == set(FIRST)
    assert {"typing", "pathlib", "json", "ctypes", "enum", "contextlib", "socket"} & set(said[-1].split()) == set()
