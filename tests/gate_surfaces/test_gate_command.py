"""`gate` on the command line: exit codes, the answer alone as JSON, and diagnostics for a person."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import foundry_implementation_actor
from foundry_implementation_actor.cli.main import main
from foundry_implementation_actor.system.install import install
from support.apps import FAKE, HONEST, OWN_TEST, SCAFFOLD, TEST, python_app, sources


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = python_app(tmp_path / "app")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Any:
    """Run `gate` with words; gives the exit code, stdout and stderr."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        code = main(["gate", *map(str, words)])
        return (code, *capfd.readouterr())

    return run


def file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "sent"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_whole_flow_in_a_terminal(app: Path, said: Any, tmp_path: Path) -> None:
    code, out, _ = said("implement", "shop", "TestCart", "--content", file(tmp_path, TEST))
    assert (code, out.startswith(f"landed  {OWN_TEST}")) == (0, True)
    code, out, err = said("implement", "shop", "Cart", "--content", file(tmp_path, FAKE))
    assert (code, out.startswith("refused  by own-test"), err) == (1, True, "")
    told = rf"refused  by own-test: {OWN_TEST}:\d+: TestCart::test_\w+: assert cart.total\(\) == 7"
    assert re.fullmatch(told, out.partition("\n")[0])
    assert out.endswith("nothing was changed\n")
    code, out, _ = said("implement", "shop", "Cart", "--content", file(tmp_path, HONEST))
    assert (code, "judged  syntax, shape, linkage, own-test" in out) == (0, True)
    code, out, _ = said("test", "shop", "Cart")
    assert (code, out.startswith("green")) == (0, True)
    code, out, _ = said("log")
    assert [line.split()[1] for line in out.splitlines() if "implement" in line] == ["landed", "refused", "landed"]


def test_with_json_the_answer_alone_is_on_stdout(app: Path, said: Any, tmp_path: Path) -> None:
    for words, code in (
        (("implement", "shop", "Cart", "--content", file(tmp_path, HONEST)), 0),
        (("implement", "shop", "Bill", "--content", file(tmp_path, HONEST)), 1),
        (("implement", "../shop", "Cart", "--content", file(tmp_path, HONEST)), 2),
        (("implement", "shop", "Cart", "--content", tmp_path / "nowhere"), 2),
        (("read", "shop", "Cart"), 0),
        (("status",), 0),
        (("recover",), 0),
        (("log",), 0),
        (("doctor",), 0),
        (("make", "plugin", "shop"), 1),
    ):
        given, out, err = said(*words, "--json")
        assert (given, err) == (code, "")
        answer = json.loads(out)
        assert answer["ok"] is (code == 0)


@pytest.mark.parametrize(
    "words",
    [
        ("implement", "shop"),
        ("implement", "shop", "Cart", "--mode", "nope"),
        ("edit", "shop", "Cart"),
        ("log", "--last", "0"),
        ("recover", "x"),
        ("status", "--nope"),
    ],
)
def test_with_json_words_that_are_wrong_are_an_answer_too(app: Path, said: Any, words: tuple[str, ...]) -> None:
    code, out, err = said(*words, "--json")
    answer = json.loads(out)
    assert (code, err, answer["ok"], answer["code"]) == (2, "", False, "bad-request")
    assert f"gate {words[0]} --help" in answer["error"]
    code, out, err = said(*words)
    assert (code, out, "Usage: " in err) == (2, "", True)


_LOUD = b'raise SystemExit("\x1b[31mred\x07\x1b]0;title\x07")\nclass Cart:\n    x = 1\n'


def test_what_judged_code_says_does_nothing_to_a_terminal(app: Path, said: Any, tmp_path: Path) -> None:
    code, out, _ = said("implement", "shop", "Cart", "--content", file(tmp_path, _LOUD))
    assert (code, r"SystemExit: \x1b[31mred\x07\x1b]0;title\x07" in out) == (1, True)
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f]", out + said("log")[1]) is None


def test_a_host_that_has_run_out_of_something_lands_nothing_unjudged(app: Path, tmp_path: Path) -> None:
    sent, before = file(tmp_path, HONEST), sources(app)
    words = ("gate", "implement", "shop", "Cart", "--content", str(sent), "--json")
    for files in (9, 24):  # neither enough to try bubblewrap, nor to run a judge
        limits = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))"
        code = f"{limits}; from foundry_implementation_actor.cli.main import main; raise SystemExit(main({words!r}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["code"], "Too many open files" in answer["error"]) == (3, "unfit", True)
        assert "ask again" in answer["error"]
        assert sources(app) == before


def test_a_mistake_is_told_on_stderr_with_what_to_do(app: Path, said: Any, tmp_path: Path) -> None:
    code, out, err = said("implement", "shop", "Cart", "--content", file(tmp_path, "x" * 8_193))
    assert (code, out) == (2, "")
    assert "8,193 bytes" in err
    assert "mode=start" in err
    assert said("implement", "shop", "Cart")[0] == 2
    assert said("read", "shop", "Cart", "--app", tmp_path / "nowhere")[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("make", "service", "shop", "1bad"),
        ("make", "service", "../shop", "Cart"),
        ("make", "spaceship", "shop"),
        ("make", "service", "shop"),
        ("make", "plugin", "shop", "Cart"),
        ("implement", "shop", "1bad", "--content", "pyproject.toml"),
        ("edit", "1bad", "Cart", "--edits", "pairs.json"),
        ("batch", "--bodies", "bodies.json"),
        ("read", "shop", "1bad"),
        ("test", "shop", "1bad"),
        ("abandon", "shop", "1bad"),
        ("log", "--last", "0"),
    ],
)
def test_what_no_app_could_answer_is_the_same_mistake_for_every_command(
    app: Path, said: Any, words: tuple[str, ...]
) -> None:
    (app / "pairs.json").write_text('[{"find": "a", "replace": "b"}]')
    (app / "bodies.json").write_text('[{"plugin": "shop", "class": "1bad", "content": "x"}]')
    before = sources(app)
    code, out, err = said(*words)
    assert (code, out, "error: " in err.lower(), sources(app)) == (2, "", True, before)


def test_a_host_that_is_not_fit_is_exit_code_three(app: Path, said: Any, tmp_path: Path) -> None:
    (app / ".foundry").rename(tmp_path / "was")
    (app / ".foundry").write_text("")
    assert said("implement", "shop", "Cart", "--content", file(tmp_path, HONEST))[0] == 3
    code, out, _ = said("doctor")
    assert (code, "state" in out) == (3, True)


def test_a_body_over_the_ceiling_comes_in_sections_cut_anywhere(app: Path, said: Any, tmp_path: Path) -> None:
    whole = (HONEST + "# caf\u00e9 " * 1_500).encode()
    cut = whole.index("\u00e9".encode(), 7_000) + 1
    for number, piece in enumerate((whole[:cut], whole[cut:]), 1):
        mode = "append" if number > 1 else "start"
        section = ("--mode", mode, "--section", str(number), "--content", file(tmp_path, piece))
        assert said("implement", "shop", "Cart", *section)[0] == 0
    code, out, _ = said("status", "--json")
    assert (code, json.loads(out)["staged"][0]["bytes"]) == (0, len(whole))
    wrong = said("implement", "shop", "Cart", "--mode", "finish", "--bytes", "7")
    assert (wrong[0], "is not what was declared" in wrong[1]) == (1, True)
    finish = ("implement", "shop", "Cart", "--mode", "finish", "--bytes", str(len(whole)), "--sections", "2")
    assert said(*finish)[0] == 0
    assert (app / SCAFFOLD).read_bytes() == whole


def test_what_is_staged_is_listed_and_dropped(app: Path, said: Any, tmp_path: Path) -> None:
    said("implement", "shop", "Cart", "--mode", "start", "--content", file(tmp_path, "x"))
    assert "shop.Cart  1 section, 1 bytes" in said("status")[1]
    assert said("abandon", "shop", "Cart")[1] == "dropped\n"
    assert said("status")[1] == "nothing is staged\n"


def test_edits_come_from_a_file_or_from_stdin(app: Path, said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [{"find": "To be written: what it does.", "replace": "What is bought."}]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(pairs).encode())))
    assert said("edit", "shop", "Cart", "--edits", "-")[0] == 0
    assert "What is bought." in (app / SCAFFOLD).read_text()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'[{"find": 1}]', b'"all"', b'[{"find":"a","find":"b"}]'])
def test_edits_that_are_no_list_of_pairs_are_a_mistake(app: Path, said: Any, tmp_path: Path, text: bytes) -> None:
    code, _, err = said("edit", "shop", "Cart", "--edits", file(tmp_path, text))
    assert (code, err.startswith("error: ")) == (2, True)


def test_two_bodies_that_need_each_other_land_together(app: Path, said: Any, tmp_path: Path) -> None:
    said("make", "service", "shop", "Item")
    cart = "from plugins.shop.item import Item\n\n\nclass Cart:\n    def item(self) -> str: return Item().name()\n"
    item = "class Item:\n    def name(self) -> str:\n        return 'pen'\n"
    alone = said("implement", "shop", "Cart", "--content", file(tmp_path, cart))
    assert alone[0] == 1
    bodies = [{"plugin": "shop", "class": name, "content": body} for name, body in (("Cart", cart), ("Item", item))]
    code, out, _ = said("batch", "--bodies", file(tmp_path, json.dumps(bodies)))
    assert (code, out.count("landed")) == (0, 2)


def test_read_gives_the_bytes_on_stdout_and_the_digest_beside(app: Path, said: Any) -> None:
    code, out, err = said("read", "shop", "Cart")
    assert (code, out) == (0, (app / SCAFFOLD).read_text())
    assert "digest " in err


def test_make_can_be_tried_first(app: Path, said: Any) -> None:
    before = sources(app)
    code, out, _ = said("make", "service", "shop", "Bill", "--dry-run")
    assert (code, out) == (0, "would make  src/plugins/shop/bill.py\n")
    assert sources(app) == before
    assert said("make", "service", "shop", "Bill")[:2] == (0, "made  src/plugins/shop/bill.py\n")
    assert said("make", "service", "shop", "Bill")[0] == 1


def test_a_red_test_is_called_red_and_reading_says_nothing_of_changes(app: Path, said: Any, tmp_path: Path) -> None:
    assert said("implement", "shop", "TestCart", "--content", file(tmp_path, TEST))[0] == 0
    code, out, _ = said("test", "shop", "Cart")
    assert (code, out.startswith(f"red  {OWN_TEST}"), "changed" in out) == (1, True, False)
    code, out, _ = said("read", "shop", "Bill")
    assert (code, out.startswith("refused  cannot read shop.Bill"), "changed" in out) == (1, True, False)


def test_a_log_without_attempts_says_so(app: Path, said: Any) -> None:
    assert said("log")[:2] == (0, "nothing was asked to land yet\n")


def test_a_body_that_is_not_given_is_asked_for(app: Path, said: Any) -> None:
    code, _, err = said("implement", "shop", "Cart")
    assert (code, "content: is missing" in err, "--content FILE" in err) == (2, True, True)


def test_a_refused_finish_says_that_its_sections_stay(app: Path, said: Any, tmp_path: Path) -> None:
    said("implement", "shop", "Cart", "--mode", "start", "--content", file(tmp_path, "class Cart("))
    code, out, _ = said("implement", "shop", "Cart", "--mode", "finish")
    assert (code, "its sections stay staged: append goes on, start begins anew" in out) == (1, True)
    assert "shop.Cart  1 section, " in said("status")[1]


def test_what_is_wrong_in_a_batch_is_told_with_the_number_of_its_body(app: Path, said: Any, tmp_path: Path) -> None:
    body = {"plugin": "shop", "class": "Cart", "content": HONEST}
    for wrong, told in (
        ({"plugin": "shop"}, "batch[2].class: is missing"),
        ({**body, "content": None, "edits": [1]}, "batch[2].edits[1]: must be"),
        ({**body, "expct": ""}, "expct: is no key of batch[2]"),
    ):
        code, _, err = said("batch", "--bodies", file(tmp_path, json.dumps([body, wrong])))
        assert (code, told in err, err) == (2, True, err)


def test_the_demo_goes_as_told(said: Any) -> None:
    code, out, _ = said("demo", "--json")
    told = json.loads(out)
    assert [scene["title"] for scene in told["scenes"] if not scene["as_told"]] == []
    assert (code, sum(scene["seconds"] for scene in told["scenes"]) < 60) == (0, True)


def test_the_demo_says_what_it_lacks_and_how_to_install_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for entry in Path(click.__file__).parents[1].iterdir():
        if not entry.name.startswith(("pytest", "tree_sitter_php")):
            (site / entry.name).symlink_to(entry)
    sources_of = Path(foundry_implementation_actor.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "foundry_implementation_actor.cli", "gate", "demo"],
        env={**os.environ, "PYTHONPATH": f"{sources_of}:{site}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "")
    assert f"python was left out; it needs pytest ({install('gate')})" in done.stdout
    assert f"tree_sitter_php ({install('gate')})" in done.stdout
    assert done.stdout.endswith("nothing could be shown\n")


def test_help_is_quick_and_imports_no_judge() -> None:
    look = "import sys; from foundry_implementation_actor.cli.main import main; main(['--help']); "
    look += "sys.exit('mcp' in sys.modules or 'tree_sitter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False, capture_output=True).returncode == 0


def test_status_names_what_is_damaged_and_the_command_that_drops_it(app: Path, said: Any, tmp_path: Path) -> None:
    for mode in ("start", "append"):
        assert said("implement", "shop", "Cart", "--mode", mode, "--content", file(tmp_path, "x"))[0] == 0
    (app / ".foundry/staging/shop.Cart/000001.part").unlink()
    code, out, _ = said("status")
    assert (code, "damaged" in out, "gate abandon shop Cart" in out) == (0, True, True)
    [body] = json.loads(said("status", "--json")[1])["staged"]
    assert (body["class"], body["damage"]) == ("Cart", "what was staged has lost a section")
    assert said("abandon", "shop", "Cart")[0] == 0
    assert "nothing is staged" in said("status")[1]
