"""The contract's handler: dicts in, dicts out, the real judges behind it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.gate.gate import Gate
from foundry_implementation_actor.gate.handler import ConstructionProbe, ImplementHandler, RootResolver
from foundry_implementation_actor.gate.house import House
from foundry_implementation_actor.gate.scaffold import Made
from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST, WAITING, python_app, sources
from support.landing import facts, left_over

CART = {"plugin": "shop", "class": "Cart"}
CART_TEST = {"plugin": "shop", "class": "TestCart"}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return python_app(tmp_path / "app")


def handler(app: Path, **how: Any) -> ImplementHandler:
    return ImplementHandler(RootResolver(app), **how)


def test_a_test_lands_a_fake_is_refused_by_it_and_the_real_body_lands(app: Path) -> None:
    at = handler(app)
    assert at.handle({**CART_TEST, "content": TEST})["ok"]
    before = facts(app / SCAFFOLD)
    refused = at.handle({**CART, "content": FAKE})
    assert set(refused) >= {"ok", "error"}
    assert "refused by own-test" in refused["error"]
    assert facts(app / SCAFFOLD) == before
    landed = at.handle({**CART, "content": HONEST})
    assert (landed["ok"], landed["file"], landed["class"]) == (True, SCAFFOLD, "Cart")
    assert landed["verified"].startswith("syntax, shape, linkage, own-test")
    assert "not judged: construction (" in landed["verified"]
    renamed = at.edit({**CART, "edits": [{"find": "def total", "replace": "def sum"}]})
    assert (renamed["ok"], "own-test" in renamed["error"] or "linkage" in renamed["error"]) == (False, True)
    assert (app / SCAFFOLD).read_text() == HONEST


def test_a_test_that_lands_says_how_the_body_that_stands_does_under_it(app: Path) -> None:
    at = handler(app)
    first = at.handle({**CART_TEST, "content": TEST})
    assert "red under the body that stands" in first["verified"]
    at.handle({**CART, "content": HONEST})
    again = at.handle({**CART_TEST, "content": TEST + "\n"})
    assert "green under the body that stands" in again["verified"]


def test_without_a_test_the_answer_says_that_behaviour_went_unjudged(app: Path) -> None:
    (app / OWN_TEST).unlink()
    landed = handler(app).handle({**CART, "content": FAKE})
    assert (landed["ok"], "own-test (the class has no own test)" in landed["verified"]) == (True, True)


def test_a_test_that_asks_nothing_is_said_to(app: Path) -> None:
    landed = handler(app).handle({**CART, "content": FAKE})
    assert (landed["ok"], "asks nothing yet" in landed["verified"]) == (True, True)


def test_a_container_that_cannot_build_the_class_refuses_it(app: Path) -> None:
    refused = handler(app, construction=ConstructionProbe(("/bin/false",))).handle({**CART, "content": HONEST})
    assert refused["ok"] is False or "construction" in refused["verified"].partition("not judged")[2]


def test_sections_land_only_with_finish(app: Path) -> None:
    at, half = handler(app), len(HONEST) // 2
    started = at.handle({**CART, "mode": "start", "content": HONEST[:half]})
    assert (started["ok"], started["verified"]) == (True, "")
    at.handle({**CART, "mode": "append", "content": HONEST[half:]})
    assert "To be written" in (app / SCAFFOLD).read_text()
    assert at.handle({**CART, "mode": "finish"})["ok"]
    assert (app / SCAFFOLD).read_text() == HONEST


def test_the_ceiling_counts_bytes_after_decoding_and_no_key_switches_it_off(app: Path) -> None:
    at, over = handler(app), "\u00e9" * 4_096 + "x"
    for sent in (
        {"content": over},
        {"content": over, "mode": "start"},
        {"content": over, "mode": "append"},
        {"content": over, "limit": 0, "unbounded": True},
        {"mode": "finish", "content": over},
    ):
        refused = at.handle({**CART, **sent})
        assert (refused["ok"], refused["code"]) == (False, "too-large")
    pairs = [{"find": "To be", "replace": "x" * 4_000}, {"find": "x", "replace": "y" * 4_200}]
    assert at.edit({**CART, "edits": pairs})["code"] == "too-large"
    assert at.handle({"batch": [{**CART, "content": "x" * 5_000}, {**CART_TEST, "content": "x" * 5_000}]})["code"] == (
        "too-large"
    )
    (app / SCAFFOLD).write_text(HONEST + "#" * 20_000)
    assert at.edit({**CART, "edits": [{"find": "#" * 20_000, "replace": ""}]})["code"] == "too-large"
    assert at.edit({**CART, "edits": [{"find": "class Cart:", "replace": "class Cart: "}]})["ok"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({**CART, "content": HONEST, "expct": "0" * 64}, "expct: is no key of implement"),
        ({**CART, "content": HONEST, "expct": "0" * 64}, "did you mean expect?"),
        ({**CART, "content": HONEST, "unknown": 1}, "unknown: is no key"),
        (dict[Any, Any](CART, content=HONEST) | {1: 2}, "1: is no key"),
        ({**CART, "mode": "start", "content": HONEST, "sektion": 1}, "did you mean section"),
        ({"batch": [{**CART, "content": HONEST, "expekt": ""}]}, "did you mean expect"),
        ({"batch": [{**CART, "content": HONEST}], "plugin": "shop"}, "plugin: is no key of a batch"),
    ],
)
def test_a_key_that_nobody_reads_is_refused_and_nothing_lands(app: Path, sent: dict[Any, Any], said: str) -> None:
    before = sources(app)
    refused = handler(app).handle(sent)
    assert (refused["ok"], refused["code"], said in refused["error"]) == (False, "bad-request", True)
    assert sources(app) == before


def test_a_key_without_a_value_is_as_good_as_none(app: Path) -> None:
    (app / OWN_TEST).unlink()
    assert handler(app).handle({**CART, "content": HONEST, "mode": None, "edits": None, "batch": None})["ok"]
    edited = handler(app).edit({**CART, "edits": [{"find": "class Cart:", "replace": "class Cart: "}], "content": None})
    assert edited["ok"]
    refused = handler(app).edit({**CART, "edits": [{"find": "class Cart: ", "replace": "class Cart:"}], "all": True})
    assert "all: is no key of edit" in refused["error"]


@pytest.mark.parametrize(
    "name", ["../shop", "shop/x", "", "shop.cart", "shop\n", "/etc", "sh op", None, 3, ["shop"], "日本"]
)
def test_nothing_path_shaped_is_a_name(app: Path, name: Any) -> None:
    for key in ("plugin", "class"):
        refused = handler(app).handle({**CART, key: name, "content": HONEST})
        assert (refused["ok"], key in refused["error"]) == (False, True)


def test_a_body_keeps_every_byte(app: Path) -> None:
    odd = "\ufeff" + HONEST.replace("\n", "\r\n").rstrip() + "  # $& \\1 \u00e9"
    assert handler(app).handle({**CART, "content": odd})["ok"]
    assert (app / SCAFFOLD).read_bytes() == odd.encode()


def test_scaffold_finds_the_file_and_unscaffolded_names_make(app: Path) -> None:
    assert ImplementHandler.scaffold(str(app), "shop", "Cart") == str(app / SCAFFOLD)
    assert ImplementHandler.scaffold(app, "shop", "TestCart") == str(app / OWN_TEST)
    assert ImplementHandler.scaffold(app, "shop", "Bill") is None
    assert ImplementHandler.scaffold(app, "../shop", "Cart") is None
    assert ImplementHandler.scaffold(app / "nowhere", "shop", "Cart") is None
    assert "make" in ImplementHandler.unscaffolded("shop", "Bill", "edit")


def test_the_app_around_the_current_directory_is_the_default(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(app / "src/plugins")
    assert ImplementHandler().handle({**CART, "content": HONEST})["ok"]


def test_where_no_app_is_the_answer_says_so(tmp_path: Path) -> None:
    refused = handler(tmp_path).handle({**CART, "content": HONEST})
    assert (refused["ok"], "no app" in refused["error"]) == (False, True)


def test_a_crash_of_the_gate_itself_is_an_answer_too(app: Path) -> None:
    class Broken(RootResolver):
        def house(self) -> Any:
            raise RecursionError("deep")

    refused = ImplementHandler(Broken()).handle({**CART, "content": HONEST})
    assert (refused["ok"], refused["code"]) == (False, "bug")


WRONG = "0" * 64


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"content": HONEST, "sha256": WRONG}, "sha256"),
        ({"content": HONEST, "bytes": 1}, "bytes"),
        ({"content": HONEST, "section": 2}, "section"),
        ({"mode": "start", "content": "x", "section": 2}, "section"),
        ({"mode": "start", "content": "x", "offset": 5}, "offset"),
        ({"mode": "start", "content": "x", "expect": WRONG}, "expect"),
        ({"mode": "append", "content": "x", "sha256": WRONG}, "sha256"),
        ({"mode": "finish", "section": 2}, "section"),
    ],
)
def test_what_a_caller_declares_counts_or_is_refused(app: Path, said: dict[str, Any], key: str) -> None:
    before = sources(app)
    for answer in (handler(app).handle({**CART, **said}), handler(app).handle({"batch": [{**CART, **said}]})):
        assert (answer["ok"], answer["code"]) == (False, "bad-request")
        assert key in answer["error"].partition(": ")[0] or "batch" in answer["error"]
    assert sources(app) == before


def test_the_last_section_that_comes_with_a_finish_stands_where_it_says(app: Path) -> None:
    at = handler(app)
    at.handle({**CART, "mode": "start", "content": "class Cart:\n"})
    for said in ({"section": 3}, {"section": 1}, {"offset": 5}):
        refused = at.handle({**CART, "mode": "finish", "content": "    x = 1\n", **said})
        assert (refused["ok"], "but the next is" in refused["error"]) == (False, True)
    assert at.handle({**CART, "mode": "finish", "content": "    x = 1\n", "section": 2, "offset": 12})["ok"]
    assert (app / SCAFFOLD).read_text() == "class Cart:\n    x = 1\n"


def test_names_that_are_too_long_for_a_file_are_a_mistake(app: Path) -> None:
    refused = handler(app).handle({"plugin": "shop", "class": "C" * 121, "content": "x"})
    assert (refused["code"], "at most 120" in refused["error"]) == ("bad-request", True)
    longest = Gate(House.open(app)).make("service", "shop", "Ab" * 60)
    assert isinstance(longest, Made)
    at, body = handler(app), f"class {'Ab' * 60}:\n    x = 1\n"
    for mode in ("start", "finish"):
        sent = {"content": body} if mode == "start" else {}
        assert at.handle({"plugin": "shop", "class": "Ab" * 60, "mode": mode, **sent})["ok"]


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.binary(max_size=5), st.text(max_size=12),
    st.sampled_from(["shop", "Cart", "TestCart", "start", "append", "finish", "\udc80", "class Cart:\n    x = 1\n"]),
)  # fmt: skip
NESTED = st.recursive(
    ODD, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ODD, inner, max_size=3))
)
KEYS = st.sampled_from(
    [
        "plugin",
        "class",
        "content",
        "mode",
        "edits",
        "batch",
        "expect",
        "section",
        "offset",
        "bytes",
        "sections",
        "sha256",
    ]
)
NAMED = st.fixed_dictionaries({"plugin": st.just("shop"), "class": st.just("Cart")}, optional={})


@given(
    st.one_of(NESTED, st.dictionaries(KEYS, NESTED, max_size=6), NAMED.flatmap(
        lambda names: st.dictionaries(KEYS, NESTED, max_size=4).map(lambda more: more | names)
    ))
)  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_the_answer_is_a_dict_that_says_ok_or_why_not(app: Path, sent: Any) -> None:
    at = handler(app)
    for answer in (at.handle(sent), at.edit(sent)):
        assert isinstance(answer, dict)
        assert answer["ok"] is True or (answer["ok"] is False and answer["error"] and answer["code"] != "bug")
    assert set(sources(app)) == {
        "pyproject.toml", "src/plugins/__init__.py", "src/plugins/shop/__init__.py", SCAFFOLD, OWN_TEST
    }  # fmt: skip


def test_killed_while_the_own_test_runs_nothing_is_changed_and_nothing_lives_on(app: Path) -> None:
    (app / OWN_TEST).write_text(WAITING)
    before = sources(app)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        handler(app, notice=lambda line: os.write(writing, line.encode())).handle({**CART, "content": HONEST})
        os._exit(1)
    os.close(writing)
    said = b""
    while b"own-test" not in said:
        said += os.read(reading, 4_096)
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    os.close(reading)
    assert sources(app) == before
    (app / "go").touch()
    assert handler(app).handle({**CART, "content": HONEST})["ok"]
    assert left_over(app) == []


def test_an_app_that_cannot_be_written_is_an_unfit_host(app: Path) -> None:
    (app / ".foundry").rename(app / "was")
    (app / ".foundry").write_text("")
    refused = handler(app).handle({**CART, "content": HONEST})
    assert (refused["ok"], refused["code"]) == (False, "unfit")
    assert os.path.lexists(app / ".foundry")
