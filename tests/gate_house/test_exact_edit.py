from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.edit import Pair, Unapplied, edited, transmitted
from foundry_implementation_actor.domain.nearest import Lines


def refusal(content: bytes | str, *pairs: tuple[bytes | str, bytes | str]) -> Unapplied:
    done = edited(_bytes(content), [Pair(_bytes(find), _bytes(replace)) for find, replace in pairs])
    assert isinstance(done, Unapplied), done
    return done


def result(content: bytes | str, *pairs: tuple[bytes | str, bytes | str]) -> bytes:
    done = edited(_bytes(content), [Pair(_bytes(find), _bytes(replace)) for find, replace in pairs])
    assert isinstance(done, bytes), done
    return done


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize("content", ["a = 1\r\nb = 2\r\n", "\ufeffa = 1\n", "x\r\na = 1\ny\r", "a = 1", "\ta = 1\n"])
def test_only_the_named_bytes_change(content: str) -> None:
    assert result(content, ("a = 1", "c = 3")) == content.replace("a = 1", "c = 3").encode()


@pytest.mark.parametrize("new", ["$&", "$1", r"\1", r"\g<0>", r"\n", "${x}", "\\", "%s", "{0}"])
def test_the_new_text_is_literal(new: str) -> None:
    assert result("before old after", ("old", new)) == f"before {new} after".encode()


def test_the_find_text_is_literal_too() -> None:
    assert result("a.b axb", ("a.b", "c")) == b"c axb"


def test_each_pair_sees_what_the_pairs_before_it_left() -> None:
    assert result("one", ("one", "two two"), ("two two", "three")) == b"three"


def test_bytes_that_are_no_text_are_edited_as_bytes() -> None:
    assert result(b"\xff\x00\xfe", (b"\x00", b"\x01\x02")) == b"\xff\x01\x02\xfe"


def test_overlapping_places_count_each() -> None:
    said = str(refusal("aaa", ("aa", "b")))
    assert "stands 2 times, in line 1;" in said


def test_an_ambiguous_text_is_refused_with_the_count_and_the_lines() -> None:
    said = str(refusal("x = 1\ny = 2\nx = 1\n", ("x = 1", "z")))
    assert "stands 2 times, in lines 1, 3;" in said
    assert "\n  1: x = 1\n  3: x = 1" in said


def test_a_text_that_stands_everywhere_is_counted_up_to_a_limit() -> None:
    said = str(refusal("a\n" * 5_000, ("a", "b")))
    assert "more than 1,000 times" in said
    assert ", 12, …" in said


def test_an_empty_find_text_is_refused() -> None:
    assert "edit 1 of 1: the find text is empty" in str(refusal("a", ("", "b")))


def test_no_pair_at_all_is_refused() -> None:
    assert refusal("a").number == 0


def test_the_wrong_pair_is_named_and_none_is_applied() -> None:
    done = refusal("one two three", ("one", "1"), ("two", "2"), ("four", "4"))
    assert (done.number, done.of) == (3, 3)
    assert str(done).startswith("nothing was applied; edit 3 of 3: the find text does not stand in the file")


def test_a_text_that_an_earlier_pair_changed_is_said_to_have_stood() -> None:
    said = str(refusal("import os\n", ("import os", "import sys"), ("import os", "x")))
    assert "stood once in the file before this call" in said


@pytest.mark.parametrize(
    ("content", "find", "kind"),
    [
        ("\treturn 1\n", "    return 1", "tabs and spaces"),
        ("a = 1\r\nb = 2\r\n", "a = 1\nb = 2", "the line ends (CRLF or LF)"),
        ("say(\u2018hi\u2019)\n", "say('hi')", "typographic quotes or dashes"),
        ("a \u2013 b\n", "a - b", "typographic quotes or dashes"),
        ("a\u00a0= 1\n", "a = 1", "a no-break or other special space"),
        (unicodedata.normalize("NFD", "café = 1\n"), "café = 1", "the Unicode normal form"),
        ("café = 1\n", unicodedata.normalize("NFD", "café = 1"), "the Unicode normal form"),
        ("a = 1  \nb\n", "a = 1\nb", "space at the end of a line"),
        ("a = 1\nb\n", "a = 1 \nb", "space at the end of a line"),
        ("a = 1\nb\n", "\ufeffa = 1\nb", "a byte order mark or a zero-width character"),
        ("a\u200b = 1\n", "a = 1", "a byte order mark or a zero-width character"),
    ],
)
def test_an_invisible_difference_is_named(content: str, find: str, kind: str) -> None:
    said = str(refusal(content, (find, "x")))
    assert "it nearly does at line 1." in said
    assert f"What differs: {kind}\n" in said


def test_the_line_of_an_invisible_difference_is_named() -> None:
    assert "it nearly does at line 2." in str(refusal("def f():\n\treturn 1\n", ("    return 1", "x")))


def test_invisible_characters_are_written_out_in_the_lines_shown() -> None:
    said = str(refusal("\ta\u00a0= 1 \r\n", ("    a = 1\n", "x")))
    assert "the file:\n  1: \\ta\\xa0= 1 \\r\n" in said


def test_several_invisible_differences_are_all_named() -> None:
    said = str(refusal("\ta = \u201cx\u201d\r\n\tb\r\n", ('    a = "x"\n    b\n', "x")))
    assert "What differs: the line ends (CRLF or LF), tabs and spaces, typographic quotes or dashes\n" in said


def test_a_miss_says_how_far_the_text_matches_and_shows_the_lines_there() -> None:
    content = "import os\n\n\ndef f():\n    return compute(1, 2)\n"
    said = str(refusal(content, ("def f():\n    return compute(1, 3)\n", "x")))
    assert (
        "its first 31 of 34 bytes do, up to 5:23, where the file goes on with '2)\\n', the find text with '3)\\n'"
        in said
    )
    assert "\n  5:     return compute(1, 2)" in said


def test_a_miss_in_the_first_line_is_placed_by_the_end_of_the_text() -> None:
    said = str(refusal("def one():\n    return 1\n", ("def two():\n    return 1\n", "x")))
    assert "from 1:8" in said
    assert "its last" in said


def test_a_column_counts_characters_and_never_cuts_one() -> None:
    said = str(refusal("ééé = é1\n", ("ééé = è1", "x")))
    assert "its first 9 of 12 bytes do, up to 1:7, where" in said
    assert "the file goes on with 'é1\\n', the find text with 'è1'" in said


def test_a_text_of_which_nothing_stands_there_says_so() -> None:
    assert "nor does its beginning or its end" in str(refusal("abc\n", ("xyz", "")))


def test_an_empty_file_is_said_to_be_empty() -> None:
    assert "the file is empty" in str(refusal("", ("a", "b")))


def test_the_lines_shown_are_few_and_short() -> None:
    said = str(refusal("a" * 5_000 + "\n" + "\tb\n" * 50, ("a" * 5_000 + "\n" + " b\n" * 50, "x")))
    assert len(said) < 2_500


def test_the_ceiling_counts_what_was_sent() -> None:
    assert transmitted([Pair(b"abc", b"de"), Pair("é".encode(), b"")]) == 7


@pytest.mark.parametrize(("offset", "place"), [(0, (1, 1)), (1, (1, 2)), (3, (2, 1)), (5, (3, 1)), (7, (4, 1))])
def test_lines_end_with_lf_crlf_or_cr(offset: int, place: tuple[int, int]) -> None:
    assert Lines(b"a\r\nb\rc\nd").place(offset) == place


SMALL = st.text(alphabet="ab \t\r\n\u00e9\u0301\u00a0\u2019'\ufeff", max_size=12).map(str.encode) | st.binary(
    max_size=6
)
PAIRS = st.lists(st.tuples(SMALL, SMALL).map(lambda both: Pair(*both)), max_size=4)


def model(content: bytes, pairs: list[Pair]) -> bytes | int:
    """What was asked, by the slowest and plainest means; or the number of the first wrong pair."""
    for number, (find, replace) in enumerate(pairs, 1):
        places = [at for at in range(len(content)) if find and content.startswith(find, at)]
        if len(places) != 1:
            return number
        content = content[: places[0]] + replace + content[places[0] + len(find) :]
    return content if pairs else 0


@settings(deadline=None)
@given(content=SMALL, pairs=PAIRS)
def test_the_result_is_exactly_what_was_asked_or_nothing(content: bytes, pairs: list[Pair]) -> None:
    done = edited(content, pairs)
    assert (done.number if isinstance(done, Unapplied) else done) == model(content, pairs)


@settings(deadline=None)
@given(content=SMALL, find=SMALL.filter(bool))
def test_a_refusal_is_always_readable_text(content: bytes, find: bytes) -> None:
    done = edited(content, [Pair(find, b"")])
    if isinstance(done, Unapplied):
        assert "\r" not in str(done)
        assert "\t" not in str(done)
        str(done).encode()
