from typing import Any

import pytest

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.show import rows


def sound() -> dict[str, Any]:
    return {
        "context": "foundry-implementation-actor/agentic-context/v1",
        "engine": "claude-code",
        "capability": "ACME.PARTS.CAP.SUP.007.WID",
        "source_repo": "acme-lab/ACME.PARTS.CAP.SUP.007.WID-implementation",
        "registry_repo": "acme-lab/acme-governance",
        "components": [
            {"name": "backend", "path": "backend/", "dockerfile": "backend/deployment/local/"},
            {"name": "stub", "path": "stub/", "dockerfile": "."},
        ],
        "ground_in": (
            {"name": "business", "answers": "why", "fetch": ["kpack", "{capability}"], "into": "a.md", "load": "eager"},
        ),
    }


def test_the_derived_names_are_those_of_the_contract() -> None:
    config = CapabilityConfig.from_dict(sound())
    assert isinstance(config, Capability)
    slug = "acme-parts-cap-sup-007-wid-implementation"
    assert config.actor_name == "ACME.PARTS.CAP.SUP.007.WID-implementation"
    assert config.actor_slug == slug
    assert config.git_author_email == f"{slug}@users.noreply.github.com"
    assert config.clone_prefix("TASK-014") == f"{slug}-TASK-014-"
    assert config.capability_path == "acme.parts/sup.007.wid"
    assert config.image_name("backend") == "acme.parts.cap.sup.007.wid-backend"
    assert config.image_ref("reg.example", "backend", "0.1.0") == "reg.example/acme.parts/sup.007.wid/backend:0.1.0"
    assert config.expand(config.ground_in[0].fetch) == ["kpack", "ACME.PARTS.CAP.SUP.007.WID"]


def test_a_dockerfile_directory_loses_its_slash_and_a_scratch_directory_gets_one() -> None:
    config = CapabilityConfig.from_dict(sound() | {"scratch": ["build", "backend/out/"], "protected": ["**/Makefile"]})
    assert [component.dockerfile for component in config.components] == ["backend/deployment/local", "."]
    assert config.scratch == ("build/", "backend/out/")
    assert config.protected == ("**/Makefile",)


@pytest.mark.parametrize(
    ("gate", "root"),
    [
        ({"root": "backend"}, "backend/"),
        ({"root": "backend/app/"}, "backend/app/"),
        ({"root": "."}, ""),
        ({"root": "./"}, ""),
        ({}, "backend/"),
    ],
)
def test_the_gates_root_is_the_one_components_unless_another_is_named(gate: dict[str, str], root: str) -> None:
    raw = sound()
    raw["components"] = [one for one in raw["components"] if one["path"] == "backend/"]
    assert CapabilityConfig.from_dict(raw).gate is None
    assert CapabilityConfig.from_dict(raw | {"gate": {**gate, "writes": "gate"}}).gate == root


@pytest.mark.parametrize(
    ("verify", "argv", "remediate"),
    [
        (["make", "test"], ("make", "test"), 0),
        ({"run": ["make", "test"]}, ("make", "test"), 0),
        ({"run": ["make", "test"], "remediate": 5}, ("make", "test"), 5),
    ],
)
def test_a_verify_is_a_command_alone_or_with_a_number_of_remediations(
    verify: Any, argv: tuple[str, ...], remediate: int
) -> None:
    raw = sound()
    raw["components"][0]["verify"] = verify
    [backend, stub] = CapabilityConfig.from_dict(raw).components
    assert (backend.verify, backend.remediate) == (argv, remediate)
    assert (stub.verify, stub.remediate) == ((), 0)


@pytest.mark.parametrize(
    ("remediate", "shown"),
    [(True, "a boolean"), (None, "null"), (-1, "-1"), (6, "6"), (1.0, "1.0"), ("1", "a string"), (float("nan"), "nan")],
)
def test_no_other_value_is_a_number_of_remediations(remediate: Any, shown: str) -> None:
    raw = sound()
    raw["components"][0]["verify"] = {"run": ["make"], "remediate": remediate}
    with pytest.raises(ConfigError, match=f"must be a whole number from 0 to 5, not {shown}"):
        CapabilityConfig.from_dict(raw)


def test_values_without_a_file_are_refused_by_their_source_and_key() -> None:
    with pytest.raises(ConfigError) as refused:
        CapabilityConfig.from_dict(sound() | {"engine": 7, "components": []}, source="the request")
    assert str(refused.value).split("\n") == [
        "the request: engine: must be a string, not a number; write `engine: claude-code`",
        "the request: components: is empty; write a list with one `{name, path, dockerfile}` for each image",
    ]


def test_one_error_keeps_its_place_and_its_advice_apart() -> None:
    with pytest.raises(ConfigError) as refused:
        CapabilityConfig.from_dict(sound() | {"source_repo": "wid"})
    assert refused.value.where == "<dict>: source_repo"
    assert refused.value.message == "'wid' is not an owner and a repository"
    assert refused.value.hint.startswith("write `<owner>/<repo>`")


def test_the_table_holds_every_derived_name() -> None:
    table = dict(rows(CapabilityConfig.from_dict(sound() | {"scratch": ["build"]}), registry="reg.example:5000"))
    assert table["image_ref(stub)"] == "reg.example:5000/acme.parts/sup.007.wid/stub:<version>"
    assert table["version tag(stub)"] == "acme.parts.cap.sup.007.wid-stub/vX.Y.Z"
    assert table["writes_only_under"] == "backend/ stub/"
    assert table["scratch"] == "build/"
    assert table["fetch(business)"] == "kpack ACME.PARTS.CAP.SUP.007.WID > a.md (eager)"
    assert table["git user.email"].endswith("@users.noreply.github.com")
