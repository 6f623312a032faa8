import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundry_implementation_actor.domain.capability import MOST_REMEDIATIONS, Capability, Component, Grounding
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.domain.report import Report
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.grammar import CONTEXT, ENGINE
from foundry_implementation_actor.sidecar.lint import lint
from foundry_implementation_actor.sidecar.load import SIDECAR
from foundry_implementation_actor.sidecar.show import rows

SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)

KEYS = (
    "context", "engine", "capability", "source_repo", "registry_repo", "components", "ground_in", "scratch",
    "protected", "gate", "name", "path", "dockerfile", "verify", "run", "remediate", "answers", "fetch", "into", "load",
    "root", "writes",
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([CONTEXT, ENGINE, "a/"])
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=8),
    max_leaves=30,
)
YAML_PIECES = st.sampled_from(
    [*KEYS, ": ", "- ", "\n", "  ", "\t", "[", "]", "{", "}", "&a ", "*a", "!t ", "'", '"', "\\", "|", ">", "---",
     "...", "%YAML 1.2", "? ", "#", ",", "~", "<<", "\ufeff", "\x00", "\x85", "\u2028", "\\UFFFFFFFF", "7", CONTEXT]
)  # fmt: skip

WORD = st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True)
SEGMENT = st.from_regex(r"[A-Za-z0-9]{1,5}([_-][A-Za-z0-9]{1,3})?", fullmatch=True).filter(
    lambda segment: segment.lower() != "cap"
)
REPOSITORY = st.builds("{}/{}".format, WORD, st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,9}x", fullmatch=True))
ARGV = st.lists(st.sampled_from(["cat", "{capability}", "{registry_repo}", "{source_repo}", ".[] | {x: 1}", "--deep"]))
VERIFIES = st.tuples(st.lists(WORD, min_size=1, max_size=2).map(tuple), st.integers(0, MOST_REMEDIATIONS))


@st.composite
def capabilities(draw: st.DrawFn) -> Capability:
    before, after = (draw(st.lists(SEGMENT, min_size=1, max_size=3)) for _ in range(2))
    names = draw(st.lists(WORD, min_size=1, max_size=3, unique=True))
    sources = draw(st.lists(WORD, max_size=3, unique=True))
    return Capability(
        engine=ENGINE,
        capability=".".join([*before, draw(st.sampled_from(["CAP", "cap", "Cap"])), *after]),
        source_repo=draw(REPOSITORY),
        registry_repo=draw(REPOSITORY),
        components=tuple(
            Component(name, f"parts/{name}/", f"docker/{name}", *draw(st.just(()) | VERIFIES)) for name in names
        ),
        ground_in=tuple(
            Grounding(name, "what it answers", ("run", *draw(ARGV)), f".foundry/{name}.md", "eager") for name in sources
        ),
        scratch=tuple(f"build/{name}/" for name in sources),
        protected=tuple(f"**/{name}" for name in sources),
    )


def sidecar_of(capability: Capability) -> dict[str, Any]:
    return {
        "context": CONTEXT,
        "engine": capability.engine,
        "capability": capability.capability,
        "source_repo": capability.source_repo,
        "registry_repo": capability.registry_repo,
        "components": [
            {"name": c.name, "path": c.path, "dockerfile": c.dockerfile} | verify_of(c) for c in capability.components
        ],
        "ground_in": [
            {"name": g.name, "answers": g.answers, "fetch": list(g.fetch), "into": g.into, "load": g.load}
            for g in capability.ground_in
        ],
        "scratch": list(capability.scratch),
        "protected": list(capability.protected),
    }


def verify_of(component: Component) -> dict[str, Any]:
    argv = list(component.verify)
    verify = {"run": argv, "remediate": component.remediate} if component.remediate else argv
    return {"verify": verify} if argv else {}


def refusal(raw: Any) -> str:
    try:
        CapabilityConfig.from_dict(raw, source="here")
    except ConfigError as error:
        return str(error)
    return ""


def fields(capability: Capability) -> tuple[object, ...]:
    return tuple(getattr(capability, name) for name in Capability.__dataclass_fields__)


@SAME_FOLDER
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_report(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SIDECAR).write_bytes(content)
    assert isinstance(lint(tmp_path), Report)


@SAME_FOLDER
@given(st.lists(YAML_PIECES, max_size=40).map("".join))
def test_any_yaml_like_text_gives_a_report(tmp_path: Path, text: str) -> None:
    (tmp_path / SIDECAR).write_text(text, encoding="utf-8")
    report = lint(tmp_path)
    assert report.errors or report.warns, "no such text is a whole sidecar"
    assert all("\n" not in line for line in [*report.errors, *report.warns])


@settings(deadline=None, max_examples=100)
@given(ANYTHING)
def test_any_values_are_taken_or_refused_in_words(raw: Any) -> None:
    problems = refusal(raw).split("\n")
    assert all(line.startswith("here: ") or not line for line in problems)


@settings(deadline=None, max_examples=50)
@given(capabilities())
def test_a_sound_capability_comes_back_as_it_was(capability: Capability) -> None:
    config = CapabilityConfig.from_dict(sidecar_of(capability))
    assert fields(config) == fields(capability)


@settings(deadline=None, max_examples=50)
@given(capabilities())
def test_every_derived_name_is_one_that_its_user_takes(capability: Capability) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", capability.actor_slug.replace("_", "-"))
    image_path = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
    assert re.fullmatch(rf"{image_path}/{image_path}", capability.capability_path)
    for component in capability.components:
        reference = capability.image_ref("registry.example:5000/team", component.name, "0.1.0-t-1-abc")
        assert re.fullmatch(rf"registry\.example:5000/team(?:/{image_path}){{3}}:[\w.-]+", reference)
        assert len(capability.clone_prefix("t" * 64)) < 250
    shown = dict(rows(capability))
    assert shown["branch"] == "impl/<task>"
    assert all(value.isprintable() for value in shown.values())


def test_a_part_that_git_would_take_for_its_own_is_never_taken() -> None:
    for path in (".git", "a/.git/b", ".Git", "a/.gIT"):
        raw = sidecar_of(Capability(ENGINE, "A.CAP.B", "o/r", "o/r", (Component("web", f"{path}/", "web"),)))
        assert refusal(raw).startswith("here: components[0].path: "), path
