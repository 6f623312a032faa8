"""The boundary judge by itself: values in, a verdict out."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.capability import Capability, Component
from foundry_implementation_actor.domain.change import EXECUTABLE, GITLINK, LINK, REGULAR, Change, Kind
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.judges.boundary import ChangeLimits, judge_boundary, judge_size

BLOB = "1" * 40


def capability(*roots: str, protected: tuple[str, ...] = ()) -> Capability:
    components = tuple(
        Component(f"c{number}", root, root) for number, root in enumerate(roots or ("backend/", "stub/"))
    )
    return Capability("claude-code", "A.CAP.B", "o/r", "o/g", components, protected=protected)


def change(
    path: str = "backend/x", mode: str = REGULAR, target: str = "", *, secret: bool = False, size: int = 1
) -> Change:
    return Change(path, Kind.ADDED, mode, BLOB, size=size, target=target, holds_secret=secret)


def judged(*inside: Change, **how: tuple[str, ...]) -> Verdict:
    return judge_boundary(capability(**how), inside, (), (), {})


def rules(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


@pytest.mark.parametrize("mode", [REGULAR, EXECUTABLE])
def test_a_plain_file_inside_passes(mode: str) -> None:
    assert judged(change(mode=mode)).outcome is Outcome.PASSED


def test_every_reason_is_found_at_once() -> None:
    verdict = judge_boundary(
        capability(protected=("*.lock",)),
        [change("backend/a", GITLINK), change("backend/b", LINK, "/etc"), change("backend/c", "100664"),
         change("backend/d", secret=True), change("backend/e.lock")],
        [change("README.md")],
        [("backend/f", "is a git repository of its own")],
        {},
    )  # fmt: skip
    assert sorted(rules(verdict)) == ["gitlink", "link", "mode", "outside", "protected", "secret", "unholdable"]


def test_a_deletion_of_a_link_or_a_protected_file_is_judged_by_its_path_only() -> None:
    gone = Change("backend/x.lock", Kind.DELETED, "000000", "")
    assert judged(gone).passed
    assert rules(judged(gone, protected=("*.lock",))) == ["protected"]


def test_a_path_is_shown_so_that_it_can_be_read() -> None:
    verdict = judge_boundary(capability(), [], [change("a\nb\udcff\x1b[31m")], (), {})
    assert str(verdict.findings[0]).startswith("a\\nb\\udcff\\x1b[31m: added outside")


NAMES = st.sampled_from(["a", "b", "backend", "stub", "deep", "..", ".", ""])
TARGETS = st.lists(NAMES, min_size=1, max_size=6).map("/".join).filter(bool)
PLACES = st.lists(st.sampled_from(["a", "b", "deep"]), max_size=3).map(
    lambda parts: "/".join(["backend", *parts, "link"])
)


@settings(deadline=None)
@given(path=PLACES, target=TARGETS)
def test_a_link_passes_only_if_no_reading_of_its_target_leaves_the_component(path: str, target: str) -> None:
    """Wherever a name on the way might lead inside the component, `..` after it must not lead out."""
    if not judged(change(path, LINK, target)).passed:
        return
    assert not target.startswith("/")
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    assert f"{end}/".startswith("backend/")
    names = [part for part in target.split("/") if part not in {"", "."}]
    assert ".." not in names[names.count("..") :]


@settings(deadline=None)
@given(path=PLACES, target=st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join))
def test_a_link_that_only_goes_down_always_passes(path: str, target: str) -> None:
    assert judged(change(path, LINK, target)).passed


def test_a_link_belongs_to_the_innermost_component() -> None:
    nested = capability("backend/", "backend/stub/")
    assert rules(judge_boundary(nested, [change("backend/stub/l", LINK, "../x")], (), (), {})) == ["link"]
    assert judge_boundary(nested, [change("backend/l", LINK, "stub/x")], (), (), {}).passed


THROUGH = {
    "out, through a link of the base": ("up/x", {"backend/up": "../.."}, ["link"]),
    "out, through two": ("one/x", {"backend/one": "two", "backend/two": "../stub"}, ["link"]),
    "out, to an absolute path": ("abs", {"backend/abs": "/etc"}, ["link"]),
    "in a circle": ("round", {"backend/round": "round"}, ["link"]),
    "inside, through a link": ("here/x", {"backend/here": "deep"}, []),
    "inside, beside a link that leads out": ("down/x", {"backend/up": "../.."}, []),
}


@pytest.mark.parametrize("how", THROUGH)
def test_a_link_is_followed_through_the_links_of_the_base(how: str) -> None:
    target, links, expected = THROUGH[how]
    assert rules(judge_boundary(capability(), [change("backend/l", LINK, target)], (), (), links)) == expected


def test_a_change_that_makes_a_link_of_the_base_lead_out_is_refused() -> None:
    links = {"backend/l": "way/../../x", "backend/way": "a/b", "stub/l": "way/../../x", "backend/out": "/etc"}
    to_folder = [Change("backend/way", Kind.DELETED, "000000", "", LINK, BLOB), change("backend/way/f")]
    [finding] = judge_boundary(capability(), to_folder, (), (), links).findings
    assert (finding.rule, finding.path) == ("link", "backend/l")
    assert judge_boundary(capability(), [change("backend/new")], (), (), links).passed


def test_the_size_of_a_change_is_refused_with_what_it_is_and_what_it_may_be() -> None:
    changes = [change("backend/small", size=10), change("backend/big", size=100)]
    assert judge_size(changes, ChangeLimits(2, 110)).passed
    [files] = judge_size(changes, ChangeLimits(1, 110)).findings
    assert str(files) == "2 files are changed, more than MAX_CHANGED_FILES=1"
    [size] = judge_size(changes, ChangeLimits(2, 109)).findings
    assert "110 bytes, more than MAX_PATCH_BYTES=109; the largest file is backend/big with 100" in str(size)


def test_no_change_is_no_reason_to_refuse() -> None:
    assert judge_size([], ChangeLimits(1, 1)).passed
    assert judge_boundary(capability(), [], [], [], {}).passed
