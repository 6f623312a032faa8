"""What is asked of the gate is judged and lands, together or not at all, also when others land meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.domain.unit import Candidate, Target, digest
from foundry_implementation_actor.gate import ledger
from foundry_implementation_actor.gate.answer import answer
from foundry_implementation_actor.gate.ask import edit_wish, wish
from foundry_implementation_actor.gate.attempt import FREE_TRIALS
from foundry_implementation_actor.gate.gate import Gate
from support.apps import python_app
from support.judging import ByWords, Gatepost, gate
from support.landing import dying_at, facts, killed, left_over

CART, ITEM = Target("shop", "Cart"), Target("shop", "Item")
FILES = {CART: "src/plugins/shop/cart.py", ITEM: "src/plugins/shop/item.py"}


def body(name: str, word: str = "new") -> str:
    return f"class {name}:\n    word = {word!r}\n"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    root = python_app(tmp_path / "app")
    gate(root).make("service", "shop", "Item")
    return root


def ask(at: Gate, target: Target = CART, **fields: Any) -> dict[str, Any]:
    sent = {"plugin": target.plugin, "class": target.class_, **fields}
    return answer(at.implement(edit_wish(sent) if "edits" in fields else wish(sent)))


def batch(at: Gate, *bodies: tuple[Target, dict[str, Any]]) -> dict[str, Any]:
    items = [{"plugin": target.plugin, "class": target.class_, **fields} for target, fields in bodies]
    return answer(at.implement(wish({"batch": items})))


def text(app: Path, target: Target = CART) -> str:
    return (app / FILES[target]).read_bytes().decode()


def test_a_body_that_is_refused_leaves_the_file_with_its_mode_and_times(app: Path) -> None:
    path = app / FILES[CART]
    path.chmod(0o640)
    before = facts(path)
    refused = ask(gate(app), content=body("Cart", "WRONG"))
    assert refused["ok"] is False
    assert "holds WRONG" in refused["error"]
    assert facts(path) == before


def test_a_body_that_a_needed_judge_cannot_judge_does_not_land(app: Path) -> None:
    refused = ask(gate(app), content=body("Cart", "DARK"))
    assert (refused["code"], "shape could not be judged: it is dark" in refused["error"]) == ("unfit", True)
    assert "DARK" not in text(app)


def test_a_body_that_another_judge_cannot_judge_lands_and_says_so(app: Path) -> None:
    landed = ask(gate(app, ByWords("linkage")), content=body("Cart", "DARK"))
    assert landed["verified"] == "nothing; not judged: linkage (it is dark)"
    assert "DARK" in text(app)


def test_an_expected_digest_that_is_stale_is_refused_before_any_judging(app: Path) -> None:
    judge = ByWords()
    refused = ask(gate(app, judge), content=body("Cart"), expect="0" * 64)
    assert digest(text(app).encode()) in refused["error"]
    assert judge.seen == []
    assert ask(gate(app), content=body("Cart"), expect=digest(text(app).encode()))["ok"]
    again = ask(gate(app), content=body("Cart"), expect="0" * 64)
    assert "holds exactly this body already" in again["error"]


def test_a_class_that_nobody_made_is_sent_to_make(app: Path) -> None:
    refused = ask(gate(app), Target("shop", "Bill"), content=body("Bill"))
    assert (refused["code"], "make" in refused["error"]) == ("refused", True)


def test_an_edit_changes_only_the_named_bytes_and_leaves_staging_alone(app: Path) -> None:
    raw = b"\xef\xbb\xbfclass Cart:\r\n\tword = '$&'\r\n\r\n    # end"
    (app / FILES[CART]).write_bytes(raw)
    ask(gate(app), mode="start", content="staged")
    assert ask(gate(app), edits=[{"find": "'$&'", "replace": r"'\g<0>$&\1'"}])["ok"]
    assert (app / FILES[CART]).read_bytes() == raw.replace(b"'$&'", rb"'\g<0>$&\1'")
    assert [staged.size for staged in gate(app).status()] == [6]


def test_a_batch_lands_together_or_not_at_all(app: Path) -> None:
    refused = batch(gate(app), (CART, {"content": body("Cart")}), (ITEM, {"content": body("Item", "WRONG")}))
    assert "shop.Item: refused by shape" in refused["error"]
    assert "To be written" in text(app)
    landed = batch(
        gate(app),
        (CART, {"content": body("Cart")}),
        (ITEM, {"edits": [{"find": "To be written: what it does.", "replace": "An item."}]}),
    )
    assert [one["file"] for one in landed["bodies"]] == [FILES[CART], FILES[ITEM]]
    assert ("new" in text(app), "An item." in text(app, ITEM)) == (True, True)


def test_each_body_of_a_batch_is_judged_beside_the_others(app: Path) -> None:
    beside: list[dict[str, bytes]] = []
    judge = ByWords(before=lambda candidate: beside.append(dict(candidate.beside)))
    batch(gate(app, judge), (CART, {"content": body("Cart")}), (ITEM, {"content": body("Item")}))
    assert beside == [{FILES[ITEM]: body("Item").encode()}, {FILES[CART]: body("Cart").encode()}]


def staged(app: Path, *pieces: str) -> None:
    for number, piece in enumerate(pieces, 1):
        ask(gate(app), mode="append" if number > 1 else "start", content=piece, section=number)


def test_a_finish_judges_the_whole_and_clears_the_staging(app: Path) -> None:
    whole = body("Cart") + "#" * 20_000
    staged(app, *(whole[at : at + 8_000] for at in range(0, len(whole), 8_000)))
    landed = ask(gate(app), mode="finish", bytes=len(whole), sections=3, sha256=digest(whole.encode()))
    assert (landed["ok"], text(app)) == (True, whole)
    assert gate(app).status() == []


@pytest.mark.parametrize("wrong", [{"bytes": 3}, {"sections": 5}, {"sha256": "0" * 64}])
def test_a_finish_that_declares_something_else_is_refused_and_loses_nothing(app: Path, wrong: dict[str, Any]) -> None:
    staged(app, body("Cart"))
    refused = ask(gate(app), mode="finish", **wrong)
    assert "is not what was declared" in refused["error"]
    assert "To be written" in text(app)
    assert ask(gate(app), mode="finish")["ok"]


def test_a_finish_that_is_refused_keeps_what_was_staged(app: Path) -> None:
    staged(app, body("Cart", "WRONG"))
    assert ask(gate(app), mode="finish")["ok"] is False
    assert len(gate(app).status()) == 1


def test_a_last_section_may_come_with_finish_and_is_not_added_twice(app: Path) -> None:
    staged(app, "class Cart:\n")
    assert ask(gate(app), mode="finish", content="    WRONG = 1\n")["ok"] is False
    assert ask(gate(app), mode="finish", content="    fine = 1\n", sections=2)["ok"]
    assert text(app) == "class Cart:\n    fine = 1\n"


def test_a_finish_asked_again_gets_the_same_answer_and_judges_nothing(app: Path) -> None:
    staged(app, body("Cart"))
    first, judge = ask(gate(app), mode="finish"), ByWords()
    assert ask(gate(app, judge), mode="finish") == first
    assert ask(gate(app, judge), mode="finish", sha256=digest(body("Cart").encode())) == first
    assert judge.seen == []
    assert "nothing was started" in ask(gate(app), mode="finish", sha256="0" * 64)["error"]
    ask(gate(app), content=body("Cart", "later"))
    assert "nothing was started" in ask(gate(app), mode="finish")["error"]


@pytest.mark.parametrize("word", ["fine", "WRONG"])
def test_a_finish_that_is_asked_while_it_runs_joins_it(app: Path, word: str) -> None:
    staged(app, body("Cart", word))
    post, joined = Gatepost(), threading.Event()
    judge = ByWords(before=post.hold)

    def noticed(line: str) -> None:
        if "another finish" in line:
            joined.set()

    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(ask, gate(app, judge), mode="finish")
        assert post.reached.wait(20)
        second = callers.submit(ask, gate(app, judge).telling(noticed), mode="finish")
        assert joined.wait(20)
        post.opened.set()
        assert first.result() == second.result()
    assert judge.seen == [body("Cart", word).encode()]
    assert sum(entry["act"] == "finish" for entry in ledger.entries(app)) == 1


def test_a_file_that_is_changed_while_its_body_is_judged_stays_as_it_was_changed(app: Path) -> None:
    def write(_: Candidate) -> None:
        (app / FILES[CART]).write_text("by hand")

    refused = ask(gate(app, ByWords(before=write)), content=body("Cart"))
    assert "was changed by somebody else" in refused["error"]
    assert text(app) == "by hand"


def test_when_another_landing_came_in_between_the_body_is_judged_again_beside_it(app: Path) -> None:
    post = Gatepost()
    beside: list[str] = []

    def look(candidate: Candidate) -> None:
        beside.append(text(app, ITEM))
        post.hold(candidate)

    with ThreadPoolExecutor(1) as callers:
        slow = callers.submit(ask, gate(app, ByWords(before=look)), content=body("Cart"))
        assert post.reached.wait(20)
        assert ask(gate(app), ITEM, content=body("Item"))["ok"]
        post.opened.set()
        assert slow.result()["ok"]
    assert ["To be written" in seen for seen in beside] == [True, False]
    assert (text(app), text(app, ITEM)) == (body("Cart"), body("Item"))


def test_of_several_bodies_for_one_class_at_once_one_lands_and_none_is_lost_unseen(app: Path) -> None:
    together = threading.Barrier(3)
    words = ["one", "two", "three"]

    def meet(_: Candidate) -> None:
        together.wait(20)

    with ThreadPoolExecutor(3) as callers:
        said = list(callers.map(lambda word: ask(gate(app, ByWords(before=meet)), content=body("Cart", word)), words))
    [landed] = [word for word, one in zip(words, said, strict=True) if one["ok"]]
    assert text(app) == body("Cart", landed)
    assert all("was changed by somebody else" in one["error"] for one in said if not one["ok"])


def test_an_edit_of_a_text_that_moved_on_while_it_was_judged_is_refused(app: Path) -> None:
    def land(_: Candidate) -> None:
        ask(gate(app), content=body("Cart") + "# To be written: what it does.\n")

    refused = ask(
        gate(app, ByWords(before=land)), edits=[{"find": "To be written: what it does.", "replace": "It is edited."}]
    )
    assert (refused["ok"], "was changed by somebody else" in refused["error"]) == (False, True)
    assert "It is edited" not in text(app)


def test_a_body_that_somebody_landed_meanwhile_just_so_lands_once_more(app: Path) -> None:
    post = Gatepost()
    with ThreadPoolExecutor(1) as callers:
        slow = callers.submit(ask, gate(app, ByWords(before=post.hold)), content=body("Cart"))
        assert post.reached.wait(20)
        assert ask(gate(app), content=body("Cart"))["ok"]
        post.opened.set()
        assert slow.result()["ok"]


def test_a_body_that_is_judged_again_and_again_holds_nobody_up_and_lands_in_the_end(app: Path) -> None:
    def others(_: Candidate) -> None:
        if len(judge.seen) <= FREE_TRIALS:
            assert ask(gate(app), ITEM, content=body("Item", f"word{len(judge.seen)}"))["ok"]

    judge = ByWords(before=others)
    assert ask(gate(app, judge), content=body("Cart"))["ok"]
    assert len(judge.seen) == FREE_TRIALS + 1
    assert (text(app), text(app, ITEM)) == (body("Cart"), body("Item", f"word{FREE_TRIALS}"))


def test_a_call_that_is_taken_back_while_it_is_judged_does_not_land_but_a_finish_does(app: Path) -> None:
    back = threading.Event()
    at = gate(app, ByWords(before=lambda _: back.set())).telling(lambda _: None, back.is_set)
    refused = ask(at, content=body("Cart"))
    assert (refused["ok"], "took the call back" in refused["error"]) == (False, True)
    assert "To be written" in text(app)
    staged(app, body("Cart"))
    assert ask(at, mode="finish")["ok"]
    assert text(app) == body("Cart")


def test_what_was_staged_and_damaged_for_one_class_stops_no_other(app: Path) -> None:
    staged(app, body("Cart"), "# more\n")
    ask(gate(app), ITEM, mode="start", content=body("Item"))
    (app / ".foundry/staging/shop.Cart/000001.part").unlink()
    assert ask(gate(app), ITEM, mode="finish")["ok"]
    [cart] = gate(app).status()
    assert (cart.target, cart.damage) == (CART, "what was staged has lost a section")


@pytest.mark.parametrize("name", ["json", "sitecustomize", "usercustomize", "pytest", "_pytest"])
def test_a_module_that_would_come_before_those_of_the_judges_is_not_landed_in(tmp_path: Path, name: str) -> None:
    (tmp_path / "gate.yaml").write_text("language: python\nsource: app\ntests: tests\nimports: [app]\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / f"{name}.py").write_text("class Cart:\n    pass\n")
    judge = ByWords()
    for sent in ({"content": body("Cart")}, {"content": body("Cart"), "mode": "start"}):
        refused = ask(gate(tmp_path, judge), Target("app", "Cart"), **sent)
        assert (refused["ok"], f"would be the module {name}" in refused["error"]) == (False, True)
    assert judge.seen == []
    assert (tmp_path / "app" / f"{name}.py").read_text() == "class Cart:\n    pass\n"


def test_many_landings_at_once_are_all_right(app: Path) -> None:
    words = [f"word{number}" for number in range(8)]
    asks = [(target, body(target.class_, word)) for word in words for target in (CART, ITEM)]
    with ThreadPoolExecutor(8) as callers:
        said = list(callers.map(lambda one: ask(gate(app), one[0], content=one[1]), asks))
    for target in (CART, ITEM):
        assert text(app, target) in [content for asked, content in asks if asked == target]
    assert all(one["ok"] or "changed by somebody else" in one["error"] for one in said)
    assert any(one["ok"] for one in said)
    assert left_over(app) == []
    assert len(list(ledger.entries(app))) == len(asks)


def test_the_ledger_holds_every_verdict_with_its_seconds_and_no_secret(app: Path) -> None:
    token = "ghp_" + "a" * 36
    judge = ByWords("linkage")
    ask(gate(app, judge), content=body("Cart", f"WRONG {token}"))
    ask(gate(app, judge), content=body("Cart"))
    refused, landed = ledger.entries(app)
    assert (refused["landed"], landed["landed"]) == (False, True)
    [cart] = landed["bodies"]
    assert (cart["plugin"], cart["class"], cart["file"]) == ("shop", "Cart", FILES[CART])
    assert cart["after"] == digest(text(app).encode())
    [verdict] = cart["verdicts"]
    assert (verdict["judge"], verdict["outcome"], verdict["seconds"] >= 0) == ("linkage", "passed", True)
    assert token not in (app / ".foundry/ledger.jsonl").read_text()


def test_a_landing_stands_though_the_ledger_cannot_be_written(app: Path) -> None:
    (app / ".foundry").mkdir(exist_ok=True)
    (app / ".foundry/ledger.jsonl").mkdir()
    landed = ask(gate(app), content=body("Cart"))
    assert landed["ok"]
    assert any("the ledger could not be written" in note for note in landed["notes"])


WAYS: dict[str, Callable[[Gate], object]] = {
    "single-shot": lambda at: ask(at, content=body("Cart")),
    "edit": lambda at: ask(at, edits=[{"find": "To be written: what it does.", "replace": "new"}]),
    "finish": lambda at: ask(at, mode="finish"),
    "batch": lambda at: batch(at, (CART, {"content": body("Cart")}), (ITEM, {"content": body("Item")})),
}


def scaffolds(app: Path) -> dict[str, bytes]:
    return {name: (app / name).read_bytes() for name in FILES.values()}


def reset(app: Path, old: dict[str, bytes]) -> None:
    for name, content in old.items():
        (app / name).write_bytes(content)
    staged(app, body("Cart"))


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_every_step_the_app_is_whole_and_the_same_ask_then_lands(app: Path, way: str) -> None:
    old, number = scaffolds(app), 1
    while True:
        reset(app, old)
        if not killed(partial(WAYS[way], gate(app, step=dying_at(number)))):
            break
        now = scaffolds(app)
        gate(app).recover()
        changed = {name for name, content in scaffolds(app).items() if content != old[name]}
        assert changed in (set(), set(FILES.values()) if way == "batch" else {FILES[CART]})
        assert all(content == old[name] or b"new" in content for name, content in now.items())
        assert left_over(app) == []
        if way != "edit" or not changed:
            assert ask(gate(app), content=body("Cart"))["ok"]
        number += 1
    assert number > 7


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_random_moments_the_app_is_whole(app: Path, way: str) -> None:
    old, chance = scaffolds(app), random.Random(f"kill {way}")
    reset(app, old)
    began = time.monotonic()
    WAYS[way](gate(app))
    whole, cut = 2 * (time.monotonic() - began), 0
    for _ in range(40):
        reset(app, old)
        cut += killed(partial(WAYS[way], gate(app)), chance.uniform(0, whole))
        now = scaffolds(app)
        assert all(content == old[name] or b"new" in content for name, content in now.items())
        gate(app).recover()
        changed = {name for name, content in scaffolds(app).items() if content != old[name]}
        assert changed in (set(), set(FILES.values()) if way == "batch" else {FILES[CART]})
        assert left_over(app) == []
    assert cut > 4
