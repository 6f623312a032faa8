"""A secret of the actor, in whatever form it turns up, is in no record, reply, commit message or pushed change."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.place import TOKEN, Place, Step, shell, write

NEW = "backend/discount.py"
SECRET = "tok/7f3a+9c2e=51d8?4b60&"
RAW = SECRET.encode()

FORMS = {
    "as it stands": SECRET,
    "in a URL": quote(SECRET, safe=""),
    "in JSON": json.dumps({"key": SECRET}),
    "in hex": RAW.hex(),
    "in upper hex": RAW.hex().upper(),
    "in base64": base64.b64encode(RAW).decode(),
    "in base64 after something else": base64.b64encode(b"me:" + RAW + b"!").decode(),
    "in base64 for URLs": base64.urlsafe_b64encode(b"a" + RAW).decode(),
    "in base32": base64.b32encode(b"ab" + RAW).decode(),
    "in lines": f"{SECRET[:11]}\n{SECRET[11:]}",
    "in base64 in lines": "\n".join(base64.b64encode(b"abc" + RAW).decode()[at : at + 20] for at in (0, 20)),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path, token=SECRET, local=True) as place:
        yield place


def pieces_of(form: str) -> set[str]:
    """What must not be seen of a form: any twelve characters that stand for nothing but the secret."""
    written = FORMS[form].replace("\n", "")
    first = {"in base64 after something else": 4, "in base64 for URLs": 2, "in base32": 4, "in base64 in lines": 4,
             "in JSON": 9}.get(form, 0)  # fmt: skip
    last = {"in JSON": 2, "in base64 after something else": 4}.get(form, 0)
    inner = written[first : len(written) - last].rstrip("=")[:-2]
    return {inner[at : at + 12] for at in range(len(inner) - 11)}


def seen_in(text: str) -> list[str]:
    """The forms of which a piece stands in a text of records, its line ends taken out."""
    whole = text.replace("\\n", "").replace("\n", "")
    return [form for form in FORMS if any(piece in whole for piece in pieces_of(form))]


def test_a_change_that_holds_a_secret_in_any_form_is_refused_naming_the_file(place: Place) -> None:
    """Each form in a file of its own."""
    files = {f"backend/form_{number}.py": FORMS[form] for number, form in enumerate(FORMS)}
    writes = [write(path, f"KEY = '''{form}'''\n") for path, form in files.items()]
    because = place.refused(*writes, write("backend/other.py"))
    assert [path for path in files if f"{path}: holds a secret of the actor" not in because] == []
    assert "other.py" not in because
    assert seen_in(because + json.dumps(place.records, ensure_ascii=False)) == []


PUT_ELSEWHERE = {
    "a link's target": (f"ln -s '{SECRET.replace('/', '-')}' backend/link", "backend/link: holds a secret"),
    "a link's target in hex": (f"ln -s {RAW.hex()} backend/link", "backend/link: holds a secret"),
    "a file's name": (f"touch 'backend/{FORMS['in a URL']}'", "backend/***: holds a secret"),
    "a file's name in base64": (f"touch backend/x{FORMS['in base64 for URLs']}", "holds a secret"),
    "a folder's name in hex": (f"mkdir backend/{RAW.hex()}; touch backend/{RAW.hex()}/a", "backend/***/a: holds"),
    "a binary file": (rf"printf '\000\377{SECRET}\000' > backend/bin", "backend/bin: holds a secret"),
    "the middle of a large file": (
        f"(head -c 3000000 /dev/zero; printf '{SECRET}'; head -c 3000000 /dev/zero) > backend/large",
        "backend/large: holds a secret",
    ),
}


@pytest.mark.parametrize("where", PUT_ELSEWHERE)
def test_a_secret_in_any_part_of_a_change_is_refused(tmp_path: Path, where: str) -> None:
    line, said = PUT_ELSEWHERE[where]
    token = SECRET.replace("/", "-") if where == "a link's target" else SECRET
    with Place(tmp_path, token=token, local=True) as place:
        because = place.refused(shell(line))
        assert said in because
        assert token not in because + json.dumps(place.records)


def test_a_secret_in_what_a_session_says_or_reads_is_hidden_in_every_form(place: Place) -> None:
    """In a tool's input and output, on stderr, in a text on the way and in the closing one, and in the commit."""
    told: list[Step] = []
    for form in FORMS.values():
        shown = f"cat <<'END'\nit is {form} there\nEND\necho '{form}' >&2"
        told += [shell(shown), {"stderr": form}, {"say": f"I saw {form} there"}]
    closing = "\n\n".join(f"It is done with {form}." for form in FORMS.values())
    landed = place.landed(*told, write(NEW), {"say": closing})
    assert landed.message.count("It is done with ") == len(FORMS)
    assert seen_in(landed.message + json.dumps(place.records, ensure_ascii=False)) == []


@pytest.mark.parametrize("form", FORMS)
def test_the_tests_here_would_see_any_form(form: str) -> None:
    assert form in seen_in(json.dumps({"text": f"it is {FORMS[form]} there"}))


@pytest.mark.parametrize("cut", [8, 12, len(SECRET) - 8])
def test_a_secret_that_comes_in_two_halves_is_hidden_in_both(place: Place, cut: int) -> None:
    first, second = SECRET[:cut], SECRET[cut:]
    landed = place.landed(
        shell(f"printf 'now {first}'"), shell(f"printf '{second} then'"),
        {"say": f"It begins {first}"}, {"say": f"{second} is its end"}, write(NEW), {"say": f"{second} it was"},
    )  # fmt: skip
    answered = [record for record in place.records if record.get("step") in {"session-tool-result", "session-text"}]
    texts = [record["text"] for record in answered]
    assert {"now ***", "*** then", "It begins ***", "*** is its end"} <= set(texts)
    assert not [text for text in texts if first in text or second in text]
    assert second not in landed.message


def test_a_secret_that_is_spelled_in_escapes_is_not_in_an_assessments_answer(place: Place) -> None:
    spelled = "".join(f"\\u{ord(character):04x}" for character in SECRET)
    answer = f'{{"feasible": false, "objections": [{{"id": "E1", "why": "it is {spelled} there"}}]}}'
    reply = place.assess({"say": answer})
    assert SECRET not in json.dumps(reply)
    assert "it is *** there" in json.dumps(reply)


def test_a_task_that_holds_a_secret_does_not_publish_it(place: Place) -> None:
    landed = place.landed(write(NEW), title=f"Use {SECRET}", context=f"with {SECRET}")
    assert SECRET not in landed.message + json.dumps(place.records)


FIXTURES = "AWS = 'AKIA{}'\nSLACK = 'xoxb-{}'\nGIT = 'ghp_{}'\n-----BEGIN {}-----\n{}\n-----END {}-----\n"


def test_tokens_in_fixtures_that_nobody_gave_the_actor_land_and_are_not_repeated(place: Place) -> None:
    label = "RSA PRIVATE KEY"
    tokens = ("IOSFODNN7EXAMPLE", "1234567890-abcdefgh", "a1B2" * 9)
    fixture = FIXTURES.format(*tokens, label, "MIIEpAIBAAKCAQEA" * 4, label)
    landed = place.landed(write("backend/fixture.py", fixture), shell("cat backend/fixture.py"), {"say": fixture})
    assert landed.read("backend/fixture.py") == fixture.rstrip("\n")
    hidden = landed.message + json.dumps(place.records)
    assert not [token for token in (*tokens, "MIIEpAIBAAKCAQEA") if token in hidden]


LOOK = """
import contextlib, os, re
from pathlib import Path
token = {reversed!r}[::-1].encode()
looked, refused = 0, []
for process in Path("/proc").iterdir():
    if not process.name.isdigit() or int(process.name) == os.getpid():
        continue
    try:
        parts = re.findall("^([0-9a-f]+)-([0-9a-f]+) r", (process / "maps").read_text(), re.MULTILINE)
        with open(process / "mem", "rb", 0) as memory:
            looked += 1
            for low, high in parts:
                with contextlib.suppress(OSError, OverflowError, ValueError):
                    memory.seek(int(low, 16))
                    if token in memory.read(int(high, 16) - int(low, 16)):
                        print("FOUND in", (process / "cmdline").read_bytes())
    except OSError as error:
        refused += [process.name] if isinstance(error, PermissionError) else []
print("LOOKED INTO", looked, "AND NOT INTO", *refused)
"""


def without_rights() -> tuple[str, ...]:
    """The words before a command that take every right of root's away."""
    return ("setpriv", "--bounding-set=-all", "--") if os.geteuid() == 0 else ()


def test_a_session_of_the_same_user_cannot_read_the_memory_of_the_actor(tmp_path: Path) -> None:
    """Without any sandbox, and without root's right to trace every process."""
    with Place(tmp_path, settings={"SANDBOX": "none"}) as place:
        (tmp_path / "look.py").write_text(LOOK.format(reversed=TOKEN[::-1]))
        steps = (shell(f"python3 {tmp_path}/look.py"), write(NEW))
        actor = place.command("implement", "--json", steps=steps, under=without_rights())
        _, errors = actor.communicate(timeout=60)
        records = [json.loads(line) for line in errors.splitlines()]
        [told] = [record["text"] for record in records if record.get("step") == "session-tool-result"][:1]
        assert "LOOKED INTO " in told
        assert "LOOKED INTO 0 " not in told
        assert str(actor.pid) in told.partition("AND NOT INTO")[2]
        assert "FOUND" not in told
